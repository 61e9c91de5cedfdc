import assert from 'node:assert/strict';
import { test } from 'node:test';
import { oracle } from './oracle/index.mjs';
import { erf, erfc, pow, roundHalfEven } from './oracle/special.mjs';
import { Sum, twoProduct } from './oracle/sum.mjs';
import { differences, ulp } from './helpers/tolerance.mjs';

const near = (got, want) => assert.ok(Math.abs(got - want) <= 2e-15 * Math.abs(want), `${got} is not ${want}`);

test('erf and erfc against published values', () => {
  near(erf(1e-10), 1.1283791670955126e-10);
  near(erf(0.5), 0.5204998778130465);
  near(erf(1), 0.8427007929497149);
  near(erf(1.5), 0.9661051464753108);
  near(erf(2.5), 0.999593047982555);
  near(erf(-3), -0.9999779095030014);
  near(erfc(0.5), 0.4795001221869535);
  near(erfc(2), 0.004677734981047266);
  near(erfc(5), 1.5374597944280349e-12);
  near(erfc(10), 2.088487583762545e-45);
  near(erfc(-2), 1.9953222650189528);
});

test('pow and round follow IEEE 754', () => {
  assert.equal(pow(1, NaN), 1);
  assert.equal(pow(NaN, 0), 1);
  assert.equal(pow(-1, Infinity), 1);
  assert.ok(Number.isNaN(pow(-2, 0.5)));
  assert.deepEqual([0.5, 1.5, 2.5, -0.5, -1.5, 2.4, -2.6].map(roundHalfEven).map((x) => x + 0), [0, 2, 2, 0, -2, 2, -3]);
});

test('sums keep what a plain sum loses', () => {
  const sum = new Sum();
  for (const value of [1e100, 1, -1e100]) sum.add(value);
  assert.equal(sum.value, 1);
  const [, rest] = twoProduct(1 + 2 ** -30, 1 + 2 ** -30);
  assert.equal(rest, 2 ** -60);
});

test('small results by hand', () => {
  const of = (dims, data) => ({ dims, data });
  assert.deepEqual([...oracle.matmul([of([2, 2], [1, 2, 3, 4]), of([2, 2], [5, 6, 7, 8])]).data], [19, 22, 43, 50]);
  assert.deepEqual([...oracle.conv2d([of([1, 1, 3, 3], [1, 2, 3, 4, 5, 6, 7, 8, 9]), of([1, 1, 2, 2], [1, 0, 0, -1])]).data], [-4, -4, -4, -4]);
  assert.deepEqual([...oracle.convTranspose2d([of([1, 1, 2, 2], [1, 2, 3, 4]), of([1, 1, 2, 2], [1, 1, 1, 1])], { strides: [2, 2] }).data],
    [1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4]);
  assert.deepEqual([...oracle.maxPool2d([of([1, 1, 2, 3], [1, 5, 2, 4, 3, 6])], { kernel: [2, 2] }).data], [5, 6]);
  assert.deepEqual([...oracle.averagePool2d([of([1, 1, 2, 2], [1, 2, 3, 4])], { kernel: [2, 2], pads: [1, 1, 0, 0], countIncludePad: true }).data], [0.25, 0.75, 1, 2.5]);
  assert.deepEqual([...oracle.softmax([of([2], [3, 3])]).data], [0.5, 0.5]);
  assert.deepEqual([...oracle.layerNorm([of([1, 2], [1, 3])], { epsilon: 0 }).data], [-1, 1]);
  assert.deepEqual([...oracle.median([of([3, 3], [1, 5, 3, 2, 2, 8, 9, 1, 4])]).data], [2, 2, 4]);
  assert.deepEqual([...oracle.median([of([4, 1], [4, 1, 3, 2])], { even: 'mean' }).data], [2.5]);
});

test('the comparison finds what is wrong', () => {
  const want = { data: [1, NaN, Infinity, 0], dims: [4] };
  assert.deepEqual(differences('exact', Float32Array.from([1, NaN, Infinity, -0]), want, 'float32'), []);
  assert.equal(differences('exact', Float32Array.from([1 + 2 ** -23, NaN, Infinity, 0]), want, 'float32').length, 1);
  assert.equal(differences('function', Float32Array.from([1, 0, Infinity, 0]), want, 'float32').length, 1);
  assert.equal(differences('function', Float32Array.from([1, NaN, 3e38, 0]), want, 'float32').length, 1);
  assert.equal(differences('function', Float32Array.from([1 + 2 ** -22, NaN, Infinity, 0]), want, 'float32').length, 0);
  assert.match(differences('exact', Float32Array.from([2, NaN, Infinity, 0]), want, 'float32')[0], /\[0\] got 2, expected 1/);
  assert.equal(differences('exact', new Float32Array(3), want, 'float32').length, 1);
  assert.equal(ulp(1, 'float32'), 2 ** -23);
  assert.equal(ulp(0, 'float32'), 2 ** -149);
  assert.equal(ulp(0, 'float64'), 2 ** -1074);
});
