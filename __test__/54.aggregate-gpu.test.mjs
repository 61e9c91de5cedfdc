// Aggregations on the test device, where that is a GPU; the emulator runs the same in 16.kernels.test.mjs.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aggregate, Tensor } from '../index.mjs';
import { columns, places, references, streamed, wholes } from './cases/aggregate.mjs';
import { device, onGpu } from './helpers/device.mjs';

const options = { skip: !onGpu && 'the test device is the CPU' };

test('what other libraries give', options, async () => {
  assert.deepEqual(await references(device), []);
});

test('rules on columns against the oracle', options, async () => {
  // Each size that a network holds compiles some fifty kernels.
  const sizes = [1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 32, 33, 64, 65, 100, 101, 127, 128, 255, 256, 257, 1000, 1701, 2500];
  assert.deepEqual(await columns(device, sizes), []);
});

test('rules on rows, pre-aggregations and reports as on the CPU', options, async () => {
  assert.deepEqual(await wholes(device, [1, 2, 3, 4, 5, 9, 16, 17, 31, 33, 64, 65, 130, 256, 257]), []);
  for (const d of [0, 1, 4097, 20_003]) assert.deepEqual(await wholes(device, [7, 20], d), []);
});

test('rows and results in every place', options, async () => {
  assert.deepEqual(await places(device), []);
  assert.deepEqual(await streamed(device), []);
});

test('more than 2^31 elements', options, async (t) => {
  const [n, d] = [24, 90_000_001];
  const part = new Float32Array(d).map((_, i) => i % 1009);
  let rows;
  try {
    rows = await Promise.all(Array.from({ length: n }, () => new Tensor('float32', part, [d]).to(device)));
  } catch (error) {
    if (error.code !== 'OUT_OF_MEMORY') throw error;
    t.skip('the card has no 9 GB');
    return;
  }
  for (const rule of ['trimmedMean', 'meamed']) {
    const result = (await (await aggregate(rows, { rule, f: 3 })).to('cpu')).data;
    for (const i of [0, 1, 1009 * 40_000 + 7, d - 1]) assert.equal(result[i], i % 1009, `${rule}, ${i}`);
  }
  rows.forEach((row) => row.dispose());
});
