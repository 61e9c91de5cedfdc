import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Tensor, add, argMax, concat, evaluate, gather, matmul, median, reduceMax, relu, slice, softmax, transpose } from '../index.mjs';
import { device, location, onGpu, requireDevice } from './helpers/device.mjs';

/** Results beyond what 32-bit offsets and grids reach. They need several GB, so they run on a GPU only. */
const options = { skip: !onGpu && 'the test device is the CPU' };

test(`the test device ${device} is there`, requireDevice);

const place = (data, dims) => new Tensor('float32', data, dims).to(location);

/** Rows `picked` of a matrix, by a product with unit rows, so that it never leaves the device. */
async function readRows(matrix, picked) {
  const [m, n] = matrix.dims;
  const unit = new Float32Array(picked.length * m);
  picked.forEach((row, i) => { unit[i * m + row] = 1; });
  const left = await place(unit, [picked.length, m]);
  const rows = await matmul(left, matrix);
  const data = await rows.getData();
  left.dispose();
  rows.dispose();
  return picked.map((_, i) => data.subarray(i * n, (i + 1) * n));
}

test('products, sums and activations of more than 2^31 elements', options, async () => {
  const m = 65537;
  const n = 32769;
  const column = await place(Float32Array.from({ length: m }, (_, i) => (i % 251) - 125), [m, 1]);
  const row = await place(Float32Array.from({ length: n }, (_, j) => (j % 127) - 63), [1, n]);
  const product = await matmul(column, row);
  assert.ok(product.size > 2 ** 31);
  const shifted = await add(product, row);
  product.dispose();
  const positive = await relu(shifted);
  shifted.dispose();
  const picked = [0, 1, 32768, 65535, 65536];
  const rows = await readRows(positive, picked);
  rows.forEach((values, k) => {
    const factor = (picked[k] % 251) - 125;
    for (let j = 0; j < n; j++) {
      const want = Math.max(0, (factor + 1) * ((j % 127) - 63));
      if (values[j] !== want) assert.fail(`row ${picked[k]}, column ${j}: ${values[j]}, expected ${want}`);
    }
  });
  for (const tensor of [column, row, positive]) tensor.dispose();
});

test('softmax of 2^20 rows and medians of 2^26 columns', options, async () => {
  const rows = 2 ** 20;
  const column = await place(new Float32Array(rows), [rows, 1]);
  const line = await place(Float32Array.from([0, 0, 0, 0]), [1, 4]);
  const flat = await matmul(column, line);
  const soft = await softmax(flat, { axis: 1 });
  assert.ok((await soft.getData()).every((value) => value === 0.25));
  for (const tensor of [column, line, flat, soft]) tensor.dispose();

  const d = 2 ** 26;
  const levels = await place(Float32Array.from([3, 1, 2]), [3, 1]);
  const ones = await place(new Float32Array(d).fill(1), [1, d]);
  const wide = await matmul(levels, ones);
  const middle = await median(wide);
  assert.ok((await middle.getData()).every((value) => value === 2));
  for (const tensor of [levels, ones, wide, middle]) tensor.dispose();
});

test('medians over more than 2^31 elements', options, async () => {
  const n = 33;
  const d = 2 ** 26;
  const levels = await place(Float32Array.from({ length: n }, (_, i) => (i * 7) % n), [n, 1]);
  const columns = await place(Float32Array.from({ length: d }, (_, j) => (j % 5) + 1), [1, d]);
  const wide = await matmul(levels, columns);
  const middle = await median(wide);
  const data = await middle.getData();
  for (let j = 0; j < d; j += 65_521) assert.equal(data[j], 16 * ((j % 5) + 1), `column ${j}`);
  assert.equal(data[d - 1], 16 * (((d - 1) % 5) + 1));
  for (const tensor of [levels, columns, wide, middle]) tensor.dispose();
});

test('expressions over more than 2^31 and 2^32 elements', options, async () => {
  // Whole numbers up to 2^11, which float16 holds.
  for (const [m, n] of [[65537, 32769], [65537, 65539]]) {
    const column = await new Tensor('float32', Float32Array.from({ length: m }, (_, i) => (i % 31) - 15), [m, 1]).to({ type: 'float16', device: location });
    const row = await new Tensor('float32', Float32Array.from({ length: n }, (_, j) => (j % 61) - 30), [1, n]).to({ type: 'float16', device: location });
    const product = await matmul(column, row);
    const difference = await evaluate('abs(p - c * r) + abs(relu(p) - max(c * r, 0))', { p: product, c: column, r: row });
    assert.ok(difference.size === m * n);
    const largest = await reduceMax(difference);
    assert.equal((await (await largest.to('float32')).getData())[0], 0, `${m} x ${n}`);
    for (const tensor of [column, row, product, difference, largest]) tensor.dispose();
  }
});

/** Rows `picked` of a matrix as arrays. */
async function cutRows(matrix, picked) {
  const rows = [];
  for (const row of picked) {
    const one = await slice(matrix, { starts: [row], ends: [row + 1], axes: [0] });
    rows.push(await one.getData());
    one.dispose();
  }
  return rows;
}

test('transposes, joins and picks of more than 2^31 elements', options, async () => {
  const m = 65537;
  const n = 32769;
  const left = (i) => (i % 251) - 125;
  const right = (j) => (j % 127) - 63;
  const column = await place(Float32Array.from({ length: m }, (_, i) => left(i)), [m, 1]);
  const row = await place(Float32Array.from({ length: n }, (_, j) => right(j)), [1, n]);
  const product = await matmul(column, row);
  const turned = await transpose(product);
  product.dispose();
  assert.deepEqual([...turned.dims], [n, m]);
  const picked = [0, 1, 16384, 32767, 32768];
  const check = (values, k, of) => {
    for (let i = 0; i < values.length; i++) {
      const want = right(picked[k]) * of(i);
      if (values[i] !== want) assert.fail(`row ${picked[k]}, column ${i}: ${values[i]}, expected ${want}`);
    }
  };
  (await cutRows(turned, picked)).forEach((values, k) => check(values, k, left));

  const tail = await slice(turned, { starts: [0], ends: [3], axes: [1] });
  const joined = await concat([turned, tail], { axis: 1 });
  (await cutRows(joined, picked)).forEach((values, k) => check(values, k, (i) => left(i < m ? i : i - m)));
  const best = await argMax(joined, { axis: 1, keepDims: false });
  const places = await best.getData();
  picked.forEach((index) => assert.equal(places[index], right(index) === 0 ? 0n : right(index) > 0 ? 250n : 0n, `row ${index}`));
  for (const tensor of [tail, joined, best]) tensor.dispose();

  const backwards = await new Tensor('int32', Int32Array.from({ length: m }, (_, i) => -1 - i), [m]).to(location);
  const mirrored = await gather(turned, backwards, { axis: 1 });
  turned.dispose();
  (await cutRows(mirrored, picked)).forEach((values, k) => check(values, k, (i) => left(m - 1 - i)));
  for (const tensor of [column, row, backwards, mirrored]) tensor.dispose();
});
