import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Tensor, add, conv2d, matmul, median, neg, relu, softmax } from '../index.mjs';
import { device, location, onGpu, requireDevice } from './helpers/device.mjs';
import { rejects } from './helpers/errors.mjs';
import { fillArray } from './helpers/random.mjs';

test(`the test device ${device} is there`, requireDevice);

const normal = (n, seed) => fillArray(new Float32Array(n), 'normal', seed, 'float32');
const square = (n, seed) => new Tensor('float32', normal(n * n, seed), [n, n]);
const bytes = (array) => Buffer.from(array.buffer, array.byteOffset, array.byteLength).toString('base64');

/** Largest slip of a 5 ms timer, in ms, while `work` runs. */
async function largestSlip(work) {
  let largest = 0;
  let last = performance.now();
  const timer = setInterval(() => {
    const now = performance.now();
    largest = Math.max(largest, now - last - 5);
    last = now;
  }, 5);
  await work();
  clearInterval(timer);
  return Math.max(largest, performance.now() - last - 5);
}

/** About a second of products of `a`, each long enough to be seen if it were run on this thread. */
async function busySecond(a) {
  const until = performance.now() + 1000;
  while (performance.now() < until) await Promise.all([matmul(a, a, { device }), matmul(a, a, { device })]);
}

test('a 5 ms timer never slips by more than 50 ms during a second of work', async () => {
  await matmul(square(64, 1), square(64, 2), { device });
  const a = square(1536, 1);
  const slips = [];
  for (let attempt = 0; attempt < 3; attempt++) {
    slips.push(await largestSlip(() => busySecond(a)));
    if (slips.at(-1) <= 50) return;
  }
  assert.fail(`slips of ${slips.map((slip) => slip.toFixed(0)).join(', ')} ms in three attempts`);
});

test('fs.readFile goes through while 64 calls are in flight', async () => {
  const file = fileURLToPath(import.meta.url);
  // Resident on a GPU, so that this thread only starts the calls; a product and its copy to the host take long enough.
  const a = await square(onGpu ? 2048 : 1024, 3).to(location);
  await readFile(file);
  let settled = 0;
  const one = async () => {
    const y = await matmul(a, a, { device });
    await y.getData();
    settled++;
  };
  const calls = Array.from({ length: 64 }, one);
  for (let i = 0; i < 4; i++) await readFile(file);
  const settledMeanwhile = settled;
  await Promise.all(calls);
  assert.ok(settledMeanwhile < 48, `${settledMeanwhile} of 64 calls were over before four small files were read`);
});

test('calls return before the work is done', async () => {
  let done = false;
  const promise = matmul(square(1024, 4), square(1024, 5), { device }).then(() => { done = true; });
  assert.equal(done, false);
  await new Promise((resolve) => { setImmediate(resolve); });
  await promise;
  assert.equal(done, true);
});

test('a signal that has fired before the call', async () => {
  const controller = new AbortController();
  controller.abort();
  await rejects(() => relu(normal(4, 1), { device, signal: controller.signal }), 'ABORTED');
  await rejects(() => matmul(square(8, 1), square(8, 2), { device, signal: AbortSignal.abort(new Error('why')) }), 'ABORTED');
});

test('a signal that fires while calls wait and run', async () => {
  const controller = new AbortController();
  const a = square(1536, 6);
  const calls = Array.from({ length: 16 }, () => matmul(a, a, { device, signal: controller.signal }));
  // The first ones have begun while the others' operands were copied; the last has only been asked for.
  controller.abort();
  const results = await Promise.allSettled(calls);
  const refused = results.filter((result) => result.status === 'rejected');
  for (const { reason } of refused) assert.equal(reason.code, 'ABORTED', reason.stack);
  assert.ok(refused.length > 0, 'none of 16 calls was stopped');
  assert.equal((await relu(Float32Array.of(2), { device }))[0], 2);
});

test('a signal that fires afterwards changes nothing, and no listener stays', async () => {
  const controller = new AbortController();
  let listening = 0;
  const { signal } = controller;
  const { addEventListener, removeEventListener } = signal;
  signal.addEventListener = (...args) => { listening++; return addEventListener.apply(signal, args); };
  signal.removeEventListener = (...args) => { listening--; return removeEventListener.apply(signal, args); };
  for (let i = 0; i < 20; i++) await relu(normal(4, 1), { device, signal });
  assert.equal(listening, 0);
  const y = await relu(Float32Array.of(2), { device, signal });
  controller.abort();
  assert.equal(y[0], 2);
});

/** What a caller may do to its arrays once it has the promise. */
const changes = {
  'written to': (x) => x.fill(1e9),
  detached: (x) => structuredClone(x.buffer, { transfer: [x.buffer] }),
  resized: (x) => x.buffer.resizable && x.buffer.resize(0),
};

for (const [how, change] of Object.entries(changes)) {
  for (const n of [1, 33, 4096, 300_000]) {
    test(`inputs of ${n} elements ${how} right after the call`, async () => {
      const make = (seed) => {
        if (how !== 'resized') return normal(n, seed);
        const x = new Float32Array(new ArrayBuffer(4 * n, { maxByteLength: 8 * n }));
        return fillArray(x, 'normal', seed, 'float32');
      };
      const [a, b] = [make(1), make(2)];
      const want = Float32Array.from(a, (value, i) => Math.fround(value + b[i]));
      const promise = add(a, b, { device });
      change(a);
      change(b);
      assert.equal(bytes(await promise), bytes(want));
    });
  }
}

test('host tensors over an array that is written to right after the call', async () => {
  const data = normal(100_000, 7);
  const want = Float32Array.from(data, (value) => -value);
  const promise = neg(new Tensor('float32', data, [100_000]), { device });
  data.fill(0);
  const got = await promise.then((y) => y.data, (error) => error);
  assert.equal(bytes(got), bytes(want));
});

test('options that are changed right after the call', async () => {
  const options = { device, dims: [[2, 3], [3, 2]], transA: false };
  const promise = matmul(Float32Array.of(1, 2, 3, 4, 5, 6), Float32Array.of(1, 0, 0, 1, 0, 0), options);
  options.dims[0][0] = 50;
  options.transA = true;
  options.device = 'nowhere';
  assert.deepEqual([...await promise], [1, 2, 4, 5]);
});

test('transfer takes the arrays over', async () => {
  const a = normal(5000, 8);
  const b = normal(5000, 9);
  const want = Float32Array.from(a, (value, i) => Math.fround(value + b[i]));
  const promise = add(a, b, { device, transfer: true });
  assert.equal(a.length, 0);
  assert.equal(a.buffer.byteLength, 0);
  assert.equal(b.length, 0);
  assert.equal(bytes(await promise), bytes(want));
});

test('transfer of one array twice, of views and of shared memory never crashes', async () => {
  const a = normal(1000, 10);
  const want = bytes(Float32Array.from(a, (value) => Math.fround(value + value)));
  const twice = await add(a, a, { device, transfer: true }).then(bytes, (error) => error.code);
  assert.ok([want, 'INVALID_ARGUMENT'].includes(twice));
  const whole = normal(1000, 11);
  const part = whole.subarray(100, 200);
  const negated = bytes(Float32Array.from(part, (value) => -value));
  const view = await neg(part, { device, transfer: true }).then(bytes, (error) => error.code);
  assert.ok([negated, 'INVALID_ARGUMENT'].includes(view), view);
  const shared = new Float32Array(new SharedArrayBuffer(400)).fill(2);
  const got = await neg(shared, { device, transfer: true }).then((y) => y[99], (error) => error.code);
  assert.ok([-2, 'INVALID_ARGUMENT'].includes(got), got);
});

test('a failing call with transfer leaves the arrays alone', async () => {
  const a = normal(10, 12);
  await rejects(() => add(a, normal(9, 13), { device, transfer: true }), 'SHAPE_MISMATCH');
  assert.equal(a.length, 10);
});

test('64 concurrent calls give the same bytes as 64 in turn', async () => {
  const w = new Tensor('float32', normal(16 * 3 * 9, 20), [16, 3, 3, 3]);
  const b = new Tensor('float32', normal(96 * 64, 21), [96, 64]);
  const works = Array.from({ length: 64 }, (_, i) => [
    () => matmul(new Tensor('float32', normal(33 * 96, i), [33, 96]), b, { device }),
    () => conv2d(new Tensor('float32', normal(2 * 3 * 15 * 15, i), [2, 3, 15, 15]), w, { device, pads: [1, 1, 1, 1] }),
    () => median(new Tensor('float32', normal(11 * 500, i), [11, 500]), { device }),
    () => softmax(new Tensor('float32', normal(20 * 100, i), [20, 100]), { device, axis: 1 }),
  ][i % 4]);
  const inTurn = [];
  for (const work of works) inTurn.push(bytes((await work()).data));
  for (let round = 0; round < 3; round++) {
    const together = await Promise.all(works.map(async (work) => bytes((await work()).data)));
    together.forEach((got, i) => assert.ok(got === inTurn[i], `call ${i} differs in round ${round}`));
  }
});

test('a failure among concurrent calls disturbs no other', async () => {
  const calls = Array.from({ length: 40 }, (_, i) =>
    (i % 4 === 3 ? add(normal(3, i), normal(4, i), { device }) : relu(Float32Array.of(i), { device })));
  const results = await Promise.allSettled(calls);
  results.forEach((result, i) => {
    if (i % 4 === 3) assert.equal(result.reason.code, 'SHAPE_MISMATCH');
    else assert.equal(result.value[0], i);
  });
});
