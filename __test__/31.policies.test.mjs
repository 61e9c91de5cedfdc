import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as w from '../index.mjs';
import { device, onGpu, requireDevice } from './helpers/device.mjs';
import { rejects } from './helpers/errors.mjs';
import { fillArray, hash } from './helpers/random.mjs';
import { differences } from './helpers/tolerance.mjs';
import { arrayOf, load, store } from './helpers/types.mjs';
import { oracle } from './oracle/index.mjs';

const dtypes = { float32: Float32Array, float64: Float64Array };

test(`the test device ${device} is there`, requireDevice);

/** One test for both element types; `of` makes the array, `run` calls an op on the test device. */
function policy(name, body) {
  for (const [dtype, TypedArray] of Object.entries(dtypes)) {
    test(`${name} (${dtype})`, () => body({
      dtype,
      of: (...values) => TypedArray.from(values),
      run: (op, ...args) => {
        const options = args.at(-1)?.constructor === Object ? args.pop() : {};
        return w[op](...args, { device, ...options });
      },
    }));
  }
}

/** Equal numbers, NaN with NaN, zeros of either sign. */
const same = (got, ...want) => assert.deepEqual([...got].map((x) => x + 0), want.map((x) => x + 0));

/** One test for both types of 16 bits: `of` gives bits of numbers, `run` numbers of the result. */
function policyOfHalves(name, body) {
  for (const type of ['float16', 'bfloat16']) {
    test(`${name} (${type})`, () => body({
      type,
      of: (...values) => store(arrayOf(type, values.length), values, type),
      run: async (op, ...args) => {
        const options = args.at(-1)?.constructor === Object ? args.pop() : {};
        return load(await w[op](...args, { device, type, ...options }), options.outputType ?? type);
      },
    }));
  }
}

policyOfHalves('NaN and infinity travel', async ({ of, run }) => {
  same(await run('relu', of(NaN, -1, 2, -Infinity)), NaN, 0, 2, 0);
  same(await run('max', of(NaN, 1, Infinity), of(1, 2, 3)), NaN, 2, Infinity);
  same(await run('sub', of(Infinity, Infinity), of(1, Infinity)), Infinity, NaN);
  same(await run('softmax', of(-Infinity, 0, -Infinity)), 0, 1, 0);
});

policyOfHalves('sums are formed in float32', async ({ of, run }) => {
  const ones = of(...Array.from({ length: 4096 }, () => 1));
  same(await run('matmul', ones, ones, { dims: [[1, 4096], [4096, 1]] }), 4096);
  same(await run('globalAveragePool', ones, { dims: [1, 1, 4096] }), 1);
  same(await run('averagePool1d', ones, { dims: [1, 1, 4096], kernel: [4096] }), 1);
  same((await run('softmax', ones)).slice(0, 1), 2 ** -12);
});

policyOfHalves('results are rounded once', async ({ type, of, run }) => {
  // Half a unit of 1, twice: a rounding between the two would lose both.
  const half = type === 'float16' ? 2 ** -11 : 2 ** -8;
  const dims = [[1, 1], [1, 1], [1, 1], [1]];
  same(await run('matmul', of(1), of(1), { dims, c: of(half), bias: of(half) }), 1 + 2 * half);
  same(await run('matmul', of(1), of(1), { dims, c: of(half) }), 1);
  same(await run('matmul', of(1), of(1), { dims, c: of(half), outputType: 'float32' }), 1 + half);
});

policyOfHalves('what passes the range is infinite, unless the result is float32', async ({ type, of, run }) => {
  const large = type === 'float16' ? 300 : 2 ** 64;
  const dims = [[1, 1], [1, 1]];
  same(await run('mul', of(large, -large), of(large, large)), Infinity, -Infinity);
  same(await run('matmul', of(large), of(large), { dims }), Infinity);
  if (type === 'float16') same(await run('matmul', of(large), of(large), { dims, outputType: 'float32' }), 90000);
});

policyOfHalves('operators without forms for 16 bits say so', async ({ type, of, run }) => {
  const x = of(...Array.from({ length: 9 }, () => 1));
  await rejects(() => run('median', x, { dims: [3, 3] }), 'UNSUPPORTED_DTYPE', 'median', type, 'float64');
});

test('operands and results of products convert where the two types say so, and nowhere else', async () => {
  const one = (type, value) => new w.Tensor(type, [value], [1, 1]);
  const product = (type, outputType) => w.matmul(one(type, 1 / 3), one(type, 1), { outputType, device });
  for (const outputType of ['float16', 'bfloat16']) {
    const y = await product('float32', outputType);
    assert.equal(y.type, outputType);
    assert.deepEqual(load(y.data, outputType), load(one(outputType, 1 / 3).data, outputType));
  }
  const refused = [['float16', 'bfloat16'], ['bfloat16', 'float64'], ['float32', 'float64'], ['float64', 'float32'], ['float32', 'int8']];
  for (const [type, outputType] of refused) {
    await rejects(() => product(type, outputType), 'INVALID_ARGUMENT', 'matmul', 'outputType', type, outputType);
  }
  await rejects(() => product('float32', 'half'), 'INVALID_ARGUMENT', 'outputType', 'half', 'bfloat16');
  await rejects(() => w.matmul(one('float16', 1), one('bfloat16', 1), { device }), 'INVALID_ARGUMENT', 'float16', 'bfloat16');
});

policy('relu passes NaN', async ({ of, run }) => same(await run('relu', of(NaN, -1, 2, -0)), NaN, 0, 2, 0));

policy('clip, max, min and leakyRelu pass NaN', async ({ of, run }) => {
  same(await run('clip', of(NaN, 5, -5), { min: -1, max: 1 }), NaN, 1, -1);
  same(await run('max', of(NaN, 1, NaN, 2), of(1, NaN, NaN, 1)), NaN, NaN, NaN, 2);
  same(await run('min', of(NaN, 1, NaN, 2), of(1, NaN, NaN, 1)), NaN, NaN, NaN, 1);
  same(await run('leakyRelu', of(NaN, -4, 2), { alpha: 0.5 }), NaN, -2, 2);
});

policy('clip with min above max gives max everywhere', async ({ of, run }) =>
  same(await run('clip', of(-9, 0, 1.5, 9), { min: 2, max: 1 }), 1, 1, 1, 1));

policy('max pooling: NaN wins, all -Infinity stays, pads never take part', async ({ of, run }) => {
  const pool = (values, extra) => run('maxPool2d', of(...values), { dims: [1, 1, 2, 2], kernel: [2, 2], ...extra });
  same(await pool([1, NaN, 3, 4]), NaN);
  same(await pool([NaN, 1, Infinity, 4]), NaN);
  same(await pool([-Infinity, -Infinity, -Infinity, -Infinity]), -Infinity);
  same(await pool([-5, -6, -7, -8], { pads: [1, 1, 1, 1], strides: [2, 2] }), -5, -6, -7, -8);
});

policy('softmax: all -Infinity gives NaN, the largest numbers share', async ({ of, run }) => {
  const minus = -Infinity;
  same(await run('softmax', of(minus, minus), { dims: [2], axis: 0 }), NaN, NaN);
  same(await run('softmax', of(3.4e38, 3.4e38, 0), { dims: [3], axis: 0 }), 0.5, 0.5, 0);
  same(await run('softmax', of(minus, 0, minus), { dims: [3], axis: 0 }), 0, 1, 0);
});

policy('variance is not mean of squares minus square of mean', async ({ dtype, of, run }) => {
  const shift = dtype === 'float32' ? 2 ** 20 : 2 ** 40;
  const x = of(shift - 1, shift + 1, shift - 1, shift + 1);
  const y = await run('layerNorm', x, { dims: [1, 4], axis: 1, epsilon: 0 });
  same(y, -1, 1, -1, 1);
});

policy('a matrix product of length 0 gives beta c, bias and activation', async ({ of, run }) => {
  const dims = [[2, 0], [0, 2]];
  same(await run('matmul', of(), of(), { dims }), 0, 0, 0, 0);
  const withC = [...dims, [2, 2]];
  same(await run('matmul', of(), of(), { dims: withC, c: of(1, 2, 3, -4), beta: 2 }), 2, 4, 6, -8);
  same(await run('matmul', of(), of(), { dims: withC, c: of(1, 2, 3, -4), beta: 2, bias: of(1, -5), activation: 'relu' }), 3, 0, 7, 0);
});

policy('beta 0 never reads c, alpha 0 never reads A or B', async ({ of, run }) => {
  const dims = [[1, 2], [2, 1], [1, 1]];
  same(await run('matmul', of(1, 2), of(3, 4), { dims, c: of(NaN), beta: 0 }), 11);
  same(await run('matmul', of(NaN, Infinity), of(3, NaN), { dims, c: of(5), alpha: 0 }), 5);
  same(await run('matmul', of(NaN, Infinity), of(3, NaN), { dims, alpha: 0 }), 0);
});

policy('Infinity and NaN come out of products where a plain chain gives them', async ({ of, run }) => {
  const product = (a, b) => run('matmul', of(...a), of(...b), { dims: [[1, a.length], [b.length, 1]] });
  same(await product([Infinity, 1], [1, 1]), Infinity);
  same(await product([Infinity, 1], [0, 1]), NaN);
  same(await product([Infinity, -Infinity], [1, 1]), NaN);
  same(await product([NaN, 0], [0, 0]), NaN);
  const long = Array.from({ length: 300 }, () => 1);
  same(await product(long.with ? long.with(200, Infinity) : long.map((v, i) => (i === 200 ? Infinity : v)), long), Infinity);
});

policy('float32 products keep float32 accuracy, element by element', async ({ dtype, run }) => {
  for (const k of [1, 8, 63, 64, 256, 1024]) {
    const make = (length, name) => fillArray(arrayOf(dtype, length), 'normal', hash(name), dtype);
    const a = make(40 * k, 'a');
    const b = make(k * 48, 'b');
    const product = (x, y) => oracle.matmul([{ data: x, dims: [40, k] }, { data: y, dims: [k, 48] }]);
    const want = product(a, b);
    const size = product(a.map(Math.abs), b.map(Math.abs));
    const got = await run('matmul', a, b, { dims: [[40, k], [k, 48]] });
    const unit = dtype === 'float32' ? 2 ** -20 : 2 ** -49;
    for (let i = 0; i < got.length; i++) {
      assert.ok(Math.abs(got[i] - want.data[i]) <= unit * size.data[i], `k ${k}, element ${i}: ${got[i]}, expected ${want.data[i]}`);
    }
  }
});

test('an 11-bit format would lose these products', async () => {
  const a = Float32Array.of(1 + 2 ** -20);
  const b = Float32Array.of(1 + 2 ** -21);
  const [got] = await w.matmul(a, b, { dims: [[1, 1], [1, 1]], device });
  assert.equal(got, Math.fround(a[0] * b[0]));
});

policy('sums over zero elements are 0, their mean NaN, their maximum an error', async ({ of, run }) => {
  same(await run('globalAveragePool', of(), { dims: [1, 2, 0, 3] }), NaN, NaN);
  await rejects(() => run('globalMaxPool', of(), { dims: [1, 2, 0, 3] }), ['SHAPE_MISMATCH', 'INVALID_ARGUMENT'], 'globalMaxPool');
  await rejects(() => run('median', of(), { dims: [0, 3] }), ['SHAPE_MISMATCH', 'INVALID_ARGUMENT'], 'median');
});

policy('median: even', async ({ of, run }) => {
  const x = of(4, 1, 3, 2);
  const dims = [4, 1];
  same(await run('median', x, { dims }), 3);
  same(await run('median', x, { dims, even: 'upper' }), 3);
  same(await run('median', x, { dims, even: 'lower' }), 2);
  same(await run('median', x, { dims, even: 'mean' }), 2.5);
  const most = of(1).BYTES_PER_ELEMENT === 4 ? 3.4028234663852886e38 : Number.MAX_VALUE;
  same(await run('median', of(most, most), { dims: [2, 1], even: 'mean' }), most);
});

policy('median: nan', async ({ of, run }) => {
  const dims = [5, 1];
  const x = of(3, NaN, -Infinity, 1, Infinity);
  same(await run('median', x, { dims }), 3);
  same(await run('median', x, { dims, nan: 'last' }), 3);
  same(await run('median', x, { dims, nan: 'omit' }), 3);
  same(await run('median', x, { dims, nan: 'omit', even: 'lower' }), 1);
  same(await run('median', x, { dims, nan: 'propagate' }), NaN);
  same(await run('median', x, { dims, nan: 'drop' }), 3);
  same(await run('median', x, { dims, nan: 'drop', even: 'lower' }), 1);
  same(await run('median', of(NaN, NaN), { dims: [2, 1], nan: 'omit' }), NaN);
  same(await run('median', of(NaN, NaN, 1), { dims: [3, 1] }), NaN);
});

policy('median: drop takes the whole row out', async ({ of, run }) => {
  const rows = of(1, 10, 2, NaN, 3, 30, Infinity, 40, 5, 50);
  same(await run('median', rows, { dims: [5, 2], nan: 'drop' }), 3, 30);
  await rejects(() => run('median', of(NaN, 1, 2, Infinity), { dims: [2, 2], nan: 'drop' }), 'INVALID_ARGUMENT', 'median', 'drop');
});

policy('median: reject names the first row and coordinate', async ({ of, run }) => {
  const rows = of(1, 10, 2, 20, 3, NaN, Infinity, 40);
  const error = await rejects(() => run('median', rows, { dims: [4, 2], nan: 'reject' }), 'INVALID_ARGUMENT', 'median');
  assert.match(error.message, /row 2\b/);
  assert.match(error.message, /(coordinate|column) 1\b/);
  same(await run('median', of(1, 2, 3), { dims: [3, 1], nan: 'reject' }), 2);
  // Beyond what one block of the scan looks at.
  const wide = of(...Array.from({ length: 60_000 }, () => 1));
  wide[20_000 + 12_345] = NaN;
  wide[20_000 + 15_000] = -Infinity;
  await assert.rejects(() => run('median', wide, { dims: [3, 20_000], nan: 'reject' }), /row 1\b.*coordinate 12345\b/);
});

policy('median: outliers in fewer than half of the rows never reach the result', async ({ dtype, of, run }) => {
  for (const n of [3, 9, 33, 64, 65, 101, 1000]) {
    const d = 16;
    const rows = fillArray(arrayOf(dtype, n * d), 'uniform', n, dtype);
    const hostile = Math.floor((n - 1) / 2);
    for (let i = 0; i < hostile * d; i++) rows[i] = [NaN, Infinity, -Infinity, -NaN][i % 4];
    const got = await run('median', rows, { dims: [n, d] });
    assert.ok([...got].every((v) => Math.abs(v) <= 1), `n ${n}: ${got}`);
  }
  same(await run('median', of(NaN, 1, -Infinity), { dims: [3, 1] }), 1);
});

test('median: a picked element keeps its bits, whatever the patterns of NaN beside it', async () => {
  const forms = [[Float32Array, Uint32Array, 0x7fc00000], [Float64Array, BigUint64Array, 0x7ff8000000000000n]];
  for (const [TypedArray, Bits, quiet] of forms) {
    for (const n of [3, 5, 16, 33, 64, 100]) {
      const rows = new TypedArray(n * 8);
      const bits = new Bits(rows.buffer);
      for (let i = 0; i < rows.length; i++) {
        rows[i] = Math.sin(i * 12.9898) * 1e-3;
        const wide = Bits === BigUint64Array;
        if (i % 5 === 0) bits[i] = wide ? 0xfff0000000000001n + BigInt(i) : 0xff800001 + i;
        if (i % 7 === 0) bits[i] = wide ? 0x7ff4000000000000n + BigInt(i) : 0x7fa00000 + i;
        if (i % 11 === 0) bits[i] = wide ? BigInt(i + 1) : i + 1;
      }
      const before = bits.slice();
      const got = await w.median(rows, { dims: [n, 8], device });
      assert.deepEqual(bits, before, 'the input is not written');
      const want = oracle.median([{ data: rows, dims: [n, 8] }]);
      assert.deepEqual(differences('exact', got, want, TypedArray === Float32Array ? 'float32' : 'float64'), [], `n ${n}`);
      const gotBits = new Bits(got.buffer, got.byteOffset, got.length);
      gotBits.forEach((value, j) => {
        if (Number.isNaN(got[j])) assert.equal(value, quiet, 'the canonical quiet NaN');
      });
    }
  }
});

policy('views with any offset are right', async ({ dtype, run }) => {
  const whole = fillArray(arrayOf(dtype, 300), 'normal', 5, dtype);
  for (let offset = 0; offset < 9; offset++) {
    const view = whole.subarray(offset, offset + 201);
    same(await run('neg', view), ...[...view].map((v) => -v));
  }
});

policy('zero-size and 0-d tensors work', async ({ dtype, of, run }) => {
  const none = new w.Tensor(dtype, of(), [2, 0, 3]);
  const scalar = new w.Tensor(dtype, of(2), []);
  assert.deepEqual([...(await run('relu', none)).dims], [2, 0, 3]);
  assert.deepEqual([...(await run('add', none, scalar)).dims], [2, 0, 3]);
  const sum = await run('add', scalar, scalar);
  assert.deepEqual([...sum.dims], []);
  same(sum.data, 4);
  assert.deepEqual([...(await run('softmax', none, { axis: 2 })).dims], [2, 0, 3]);
  assert.deepEqual([...(await run('median', new w.Tensor(dtype, of(), [3, 0]))).dims], [0]);
});

policy('a window beyond the padded input is a SHAPE_MISMATCH', async ({ dtype, of, run }) => {
  const x = of(...Array.from({ length: 9 }, () => 1));
  const large = arrayOf(dtype, 25).fill(1);
  await rejects(() => run('conv2d', x, large, { dims: [[1, 1, 3, 3], [1, 1, 5, 5]] }), 'SHAPE_MISMATCH', 'conv2d');
  await rejects(() => run('conv2d', x, of(1, 1, 1, 1), { dims: [[1, 1, 3, 3], [1, 1, 2, 2]], dilations: [3, 1] }), 'SHAPE_MISMATCH', 'conv2d');
  await rejects(() => run('maxPool2d', x, { dims: [1, 1, 3, 3], kernel: [4, 2] }), 'SHAPE_MISMATCH', 'maxPool2d');
  await rejects(() => run('averagePool2d', x, { dims: [1, 1, 3, 3], kernel: [2, 2], dilations: [1, 3] }), 'SHAPE_MISMATCH', 'averagePool2d');
  same(await run('conv2d', x, large, { dims: [[1, 1, 3, 3], [1, 1, 5, 5]], pads: [1, 1, 1, 1] }), 9);
});

policy('SAME_UPPER puts the odd pad at the end, SAME_LOWER at the start', async ({ of, run }) => {
  const call = (autoPad) => run('conv1d', of(1, 2, 3), of(10, 1), { dims: [[1, 1, 3], [1, 1, 2]], autoPad });
  same(await call('SAME_UPPER'), 12, 23, 30);
  same(await call('SAME_LOWER'), 1, 12, 23);
});

policy('ceil mode drops windows that start in the trailing padding', async ({ of, run }) => {
  const x = of(...Array.from({ length: 16 }, (_, i) => i));
  const options = { dims: [1, 1, 4, 4], kernel: [2, 2], strides: [3, 3], pads: [0, 0, 1, 1], ceilMode: true };
  same(await run('maxPool2d', x, options), 5, 7, 13, 15);
  const narrow = { dims: [1, 1, 4, 4], kernel: [1, 1], strides: [2, 2], pads: [0, 0, 1, 1], ceilMode: true };
  same(await run('maxPool2d', x, narrow), 0, 2, 8, 10);
});

policy('padding multiplies: 0 times a weight that is not finite is NaN', async ({ of, run }) => {
  const call = (weight) => run('conv1d', of(1, 1), of(weight, 1), { dims: [[1, 1, 2], [1, 1, 2]], pads: [1, 0] });
  same(await call(NaN), NaN, NaN);
  same(await call(Infinity), NaN, Infinity);
});

policy('same inputs, same bytes', async ({ dtype, run }) => {
  const a = fillArray(arrayOf(dtype, 65 * 300), 'normal', 1, dtype);
  const b = fillArray(arrayOf(dtype, 300 * 33), 'normal', 2, dtype);
  const first = await run('matmul', a, b, { dims: [[65, 300], [300, 33]] });
  for (let i = 0; i < 5; i++) assert.deepEqual(await run('matmul', a, b, { dims: [[65, 300], [300, 33]] }), first);
});

test('medians on the GPU and the CPU are equal', { skip: !onGpu && 'the test device is the CPU' }, async () => {
  for (const n of [5, 32, 64, 100, 257]) {
    const rows = fillArray(new Float32Array(n * 333), 'nonFinite', n, 'float32');
    const want = await w.median(rows, { dims: [n, 333], device: 'cpu' });
    const got = await w.median(rows, { dims: [n, 333], device });
    assert.deepEqual(differences('exact', got, { data: want, dims: [333] }, 'float32'), [], `n ${n}`);
  }
});

for (const [type, indices] of Object.entries({ int32: (...list) => Int32Array.from(list), int64: (...list) => BigInt64Array.from(list, BigInt) })) {
  const x = (...values) => Float32Array.from(values);
  const dims = [[2, 2], [1, 2]];
  const calls = {
    gather: (wild) => [[x(1, 2, 3, 4), indices(-2, wild)], { axis: 1, dims: [[2, 2], [2]] }, [1, 0, 3, 0]],
    gatherElements: (wild) => [[x(1, 2, 3, 4), indices(1, wild)], { axis: 0, dims }, [3, 0]],
    scatterElements: (wild) => [[x(1, 2, 3, 4), indices(-1, wild), x(8, 9)], { axis: 0, dims: [...dims, [1, 2]] }, [1, 2, 8, 4]],
  };
  const limits = type === 'int32' ? [-(2 ** 31), 2 ** 31 - 1] : [-(2n ** 63n), 2n ** 63n - 1n];

  test(`indices out of range are refused where the host has them (${type})`, async () => {
    for (const [op, of] of Object.entries(calls)) {
      for (const wild of [2, -3, ...limits]) {
        const [operands, options] = of(wild);
        await rejects(() => w[op](...operands, { ...options, device }), 'OUT_OF_RANGE', op, "'indices'", 'from -2 to 1', `got ${wild} at position 1`);
        const tensors = operands.map((data, index) => new w.Tensor(index === 1 ? type : 'float32', data, options.dims[index]));
        await rejects(() => w[op](...tensors, { axis: options.axis, device }), 'OUT_OF_RANGE', op, "'indices'");
      }
    }
  });

  test(`indices out of range on a GPU give zeros and write nothing (${type})`, { skip: !onGpu && 'the test device is the CPU' }, async () => {
    for (const [op, of] of Object.entries(calls)) {
      for (const wild of [2, -3, ...limits]) {
        const [operands, options, want] = of(wild);
        const tensors = operands.map((data, index) => new w.Tensor(index === 1 ? type : 'float32', data, options.dims[index]).to(device));
        const y = await w[op](...await Promise.all(tensors), { axis: options.axis });
        same(await y.getData(), ...want);
      }
    }
  });
}

/** Neighbours that float64 does not tell apart. */
const neighbours = {
  int64: [9007199254740992n, 9007199254740993n, -9223372036854775808n, -9223372036854775807n, 9223372036854775806n, 9223372036854775807n, 0n],
  uint64: [9007199254740992n, 9007199254740993n, 18446744073709551614n, 18446744073709551615n, 9223372036854775808n, 1n, 0n],
};

for (const [type, values] of Object.entries(neighbours)) {
  const data = () => (type === 'int64' ? BigInt64Array : BigUint64Array).from(values);
  const tensor = () => new w.Tensor(type, data(), [values.length]);
  const ranked = values.map((value, index) => ({ value, index })).sort((a, b) => (a.value < b.value ? -1 : 1));

  test(`neighbours beyond 2^53 are told apart (${type})`, async () => {
    const indexOf = async (/** @type {'argMax' | 'argMin'} */ op) => [...(await w[op](tensor(), { axis: 0, device })).data];
    assert.deepEqual([await indexOf('argMax'), await indexOf('argMin')], [[BigInt(ranked.at(-1).index)], [BigInt(ranked[0].index)]]);
    for (const [op, place] of /** @type {const} */ ([['reduceMax', -1], ['reduceMin', 0]])) {
      assert.deepEqual([...(await w[op](tensor(), { axes: [0], device })).data], [ranked.at(place).value], op);
    }
    for (const largest of [true, false]) {
      const [top, places] = await w.topK(tensor(), { k: values.length, largest, device });
      const wanted = largest ? ranked.toReversed() : ranked;
      assert.deepEqual([...top.data], wanted.map(({ value }) => value), `topK, largest ${largest}`);
      assert.deepEqual([...places.data], wanted.map(({ index }) => BigInt(index)), `topK, largest ${largest}`);
    }
  });
}

policy('topK takes NaN before any number', async ({ of, dtype }) => {
  const x = () => new w.Tensor(dtype, of(2, NaN, -Infinity, Infinity, NaN, -1), [6]);
  for (const [largest, values, places] of /** @type {const} */ ([[true, [NaN, NaN, Infinity, 2], [1, 4, 3, 0]], [false, [NaN, NaN, -Infinity, -1], [1, 4, 2, 5]]])) {
    const [top, indices] = await w.topK(x(), { k: 4, largest, device });
    same(top.data, ...values);
    assert.deepEqual([...indices.data].map(Number), places);
  }
});
