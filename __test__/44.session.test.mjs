// Sessions as a caller meets them: what is checked, what is given back, what ends them. Numbers of operators are the business
// of the conformance cases.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { after, test } from 'node:test';
import { InferenceSession, Tensor } from '../index.mjs';
import { device, onGpu, requireDevice } from './helpers/device.mjs';
import { rejects } from './helpers/errors.mjs';
import { initializer, int, model, node, value } from './helpers/onnx.mjs';
import { generator } from './helpers/random.mjs';

test(`the test device ${device} is there`, requireDevice);

/** y = relu(x + x) and z = x * 2 as its cast to int64, for x [batch, 2]. */
const doubled = model({
  nodes: [node('Add', ['x', 'x'], ['s']), node('Relu', ['s'], ['y']), node('Cast', ['s'], ['z'], [int('to', 7)])],
  inputs: [value('x', 1, ['batch', 2])],
  outputs: [value('y', 1, ['batch', 2]), value('z', 7, ['batch', 2])],
});
const x = new Float32Array([1, -2, 3, -4]);
const create = (options = {}) => InferenceSession.create(doubled, { device, ...options });

test('names, metadata and the device are those of the model and the call', async () => {
  const session = await create();
  assert.deepEqual([session.inputNames, session.outputNames], [['x'], ['y', 'z']]);
  assert.deepEqual(session.inputMetadata, [{ name: 'x', isTensor: true, type: 'float32', shape: ['batch', 2] }]);
  assert.deepEqual(session.outputMetadata[1], { name: 'z', isTensor: true, type: 'int64', shape: ['batch', 2] });
  assert.equal(session.device, device === 'cuda' ? 'cuda:0' : device);
  await session.release();
});

test('a run takes Tensors and typed arrays, at one shape after the other', async () => {
  const session = await create();
  for (const feed of [new Tensor('float32', x, [2, 2]), x, new Tensor('float32', x.slice(0, 2), [1, 2]), new Float32Array(0)]) {
    const data = feed instanceof Tensor ? feed.data : feed;
    const { y, z } = await session.run({ x: feed });
    assert.deepEqual(y.dims, [data.length / 2, 2]);
    assert.deepEqual([...y.data], [...data].map((one) => Math.max(2 * one, 0)));
    assert.deepEqual([...z.data], [...data].map((one) => BigInt(2 * one)));
  }
  await session.release();
});

test('outputs can be chosen, and filled in place', async () => {
  const session = await create();
  assert.deepEqual(Object.keys(await session.run({ x }, ['z'])), ['z']);
  const target = new Tensor('float32', new Float32Array(4), [2, 2]);
  const { y } = await session.run({ x }, { y: target });
  assert.equal(y, target);
  assert.deepEqual([...target.data], [2, 0, 6, 0]);
  await rejects(() => session.run({ x }, { y: new Tensor('float32', new Float32Array(2), [1, 2]) }), 'SHAPE_MISMATCH', /output 'y'/);
  await rejects(() => session.run({ x }, ['w']), 'INVALID_ARGUMENT', /unknown output 'w'; outputs: y, z/);
  await session.release();
});

test('a model comes from a path, a URL, bytes or a part of a buffer', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'warpwright-'));
  after(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'model.onnx');
  writeFileSync(path, doubled);
  const padded = new Uint8Array(doubled.length + 7);
  padded.set(doubled, 3);
  const sources = [[path], [pathToFileURL(path)], [doubled], [padded.buffer, 3, doubled.length]];
  for (const source of sources) {
    const session = await InferenceSession.create(...source, { device });
    assert.deepEqual([...(await session.run({ x })).y.data], [2, 0, 6, 0]);
    session.dispose();
  }
  await rejects(() => InferenceSession.create(join(folder, 'none.onnx')), 'INVALID_MODEL', /none\.onnx/);
  await rejects(() => InferenceSession.create(7), 'INVALID_ARGUMENT', /path or its bytes/);
});

test('feeds are checked before anything runs, and the next run works', async () => {
  const session = await create();
  await rejects(() => session.run({}), 'INVALID_ARGUMENT', /input 'x' is missing/);
  await rejects(() => session.run({ x, w: x }), 'INVALID_ARGUMENT', /unknown input 'w'; inputs: x/);
  await rejects(() => session.run({ x: new Float64Array(4) }), 'INVALID_ARGUMENT', /'x'/);
  await rejects(() => session.run({ x: new Tensor('float64', new Float64Array(4), [2, 2]) }), 'INVALID_ARGUMENT', /'x' must be float32, got float64/);
  await rejects(() => session.run({ x: new Tensor('float32', x, [4]) }), 'SHAPE_MISMATCH', /rank 2/);
  await rejects(() => session.run({ x: new Tensor('float32', x, [1, 4]) }), 'SHAPE_MISMATCH', /dim 1/);
  await rejects(() => session.run({ x: new Float32Array(3) }), 'SHAPE_MISMATCH', /3 elements/);
  await rejects(() => session.run([x]), 'INVALID_ARGUMENT', /feeds must be an object/);
  assert.deepEqual([...(await session.run({ x })).y.data], [2, 0, 6, 0]);
  await session.release();
});

test('options of onnxruntime are taken, others are errors', async () => {
  const session = await create({ graphOptimizationLevel: 'all', logSeverityLevel: 3, freeDimensionOverrides: { batch: 2 }, extra: undefined });
  await rejects(() => session.run({ x: x.slice(0, 2) }), 'SHAPE_MISMATCH', /'batch', which freeDimensionOverrides makes 2/);
  await rejects(() => session.run({ x }, undefined, { tags: 'a' }), 'INVALID_ARGUMENT', /unknown option 'tags'/);
  await rejects(() => session.run({ x }, undefined, { terminate: true }), 'ABORTED', /terminate/);
  await session.release();
  await rejects(() => create({ devise: 'cpu' }), 'INVALID_ARGUMENT', /unknown option 'devise'/);
  await rejects(() => create({ device: 'gpu' }), 'DEVICE_NOT_FOUND', /gpu/);
  await rejects(() => create({ maxModelBytes: 10 }), 'INVALID_MODEL', /maxModelBytes/);
  const byProvider = await InferenceSession.create(doubled, { executionProviders: ['cpu'] });
  assert.equal(byProvider.device, 'cpu');
});

test('operators that are not known are all named at once', async () => {
  const strange = model({
    nodes: [node('Foo', ['x'], ['a']), node('Bar', ['a'], ['b']), node('Relu', ['b'], ['y'])],
    inputs: [value('x', 1, [1])],
    outputs: [value('y', 1, [1])],
  });
  await rejects(() => InferenceSession.create(strange, { device }), 'UNSUPPORTED_OP', /Bar \(version 17\), Foo \(version 17\)/);
});

test('a signal ends a run, a release ends a session', async () => {
  const session = await create();
  await rejects(() => session.run({ x }, undefined, { signal: AbortSignal.abort() }), 'ABORTED', /signal/);
  const running = session.run({ x });
  await session.release();
  await session.release();
  assert.deepEqual([...(await running).y.data], [2, 0, 6, 0]);
  await rejects(() => session.run({ x }), 'DISPOSED', /released/);
});

test('runs may overlap and do not meet', async () => {
  const session = await create();
  const runs = Array.from({ length: 20 }, (_, index) => session.run({ x: new Float32Array([index, -index]) }));
  const results = await Promise.all(runs);
  results.forEach(({ y }, index) => assert.deepEqual([...y.data], [2 * index, 0]));
  await session.release();
});

test('results stay where they were made when that is asked for', async () => {
  const session = await create();
  const { y } = await session.run({ x }, ['y'], { outputLocation: 'device' });
  assert.equal(y.location, onGpu ? session.device : 'cpu');
  assert.deepEqual([...(await y.getData())], [2, 0, 6, 0]);
  await session.release();
});

test('a session tells where its steps ran and what they took', async () => {
  const session = await create();
  assert.deepEqual(session.placement, []);
  await session.run({ x });
  const { device: place } = session;
  assert.deepEqual(session.placement.map(({ op, device: at }) => [op, at]), [['add', place], ['relu', place], ['cast', place]]);
  assert.match(session.placement[1].node, /Relu/);
  const steps = await session.profile({ x });
  assert.deepEqual(steps.map(({ op }) => op), ['add', 'relu', 'cast']);
  assert.ok(steps.every(({ milliseconds, device: at }) => milliseconds >= 0 && at === place));
  await rejects(() => session.profile({}), 'INVALID_ARGUMENT', /input 'x' is missing/);
  await session.release();
  await rejects(() => session.profile({ x }), 'DISPOSED', /released/);
});

test('an operator without a GPU form is an error where the GPU was asked for', async () => {
  const host = model({ nodes: [node('Det', ['x'], ['y'])], inputs: [value('x', 1, [2, 2])], outputs: [value('y', 1, [])] });
  const session = await InferenceSession.create(host, { device });
  const matrix = new Float32Array([3, 1, 2, 4]);
  if (onGpu) await rejects(() => session.run({ x: matrix }), 'UNSUPPORTED_OP', /Det.*has no GPU form; device 'auto'/);
  else assert.deepEqual([...(await session.run({ x: matrix })).y.data], [10]);
  await session.release();
});

/** y = softmax(x · w + b) for x [batch, 40] and w [40, 24], with relu(x · w) as h. */
function dense() {
  const random = generator(7);
  const weights = Float32Array.from({ length: 40 * 24 }, () => random() - 0.5);
  const bias = Float32Array.from({ length: 24 }, () => random() - 0.5);
  const bytes = model({
    nodes: [
      node('MatMul', ['x', 'w'], ['p']),
      node('Relu', ['p'], ['h']),
      node('Add', ['p', 'b'], ['s']),
      node('Softmax', ['s'], ['y'], [int('axis', 1)]),
    ],
    inputs: [value('x', 1, ['batch', 40])],
    outputs: [value('y', 1, ['batch', 24]), value('h', 1, ['batch', 24])],
    initializers: [initializer('w', [40, 24], weights), initializer('b', [24], bias)],
  });
  const oracle = (data) => {
    const rows = Array.from({ length: data.length / 40 }, (_, row) =>
      Array.from({ length: 24 }, (_, column) => {
        let sum = 0;
        for (let k = 0; k < 40; k++) sum += data[row * 40 + k] * weights[k * 24 + column];
        return sum;
      }),
    );
    const y = rows.flatMap((row) => {
      const exp = row.map((one, column) => Math.exp(one + bias[column]));
      const sum = exp.reduce((a, b) => a + b);
      return exp.map((one) => one / sum);
    });
    return { y, h: rows.flat().map((one) => Math.max(one, 0)) };
  };
  return { bytes, oracle, feed: (batch) => Float32Array.from({ length: batch * 40 }, () => random() * 2 - 1) };
}

function agree(got, want) {
  assert.equal(got.length, want.length);
  got.forEach((one, index) => assert.ok(Math.abs(one - want[index]) <= 1e-5 + 1e-5 * Math.abs(want[index]), `${index}: ${one} for ${want[index]}`));
}

test('the same plan gives right numbers however often it runs, one run after the other, beside others and between other shapes', async () => {
  const { bytes, oracle, feed } = dense();
  const session = await InferenceSession.create(bytes, { device });
  const once = async (batch) => {
    const data = feed(batch);
    const { y, h } = await session.run({ x: data });
    agree(y.data, oracle(data).y);
    agree(h.data, oracle(data).h);
  };
  for (const batch of [3, 3, 3, 1, 3, 1, 1, 300, 300, 3, 300]) await once(batch);
  await Promise.all([3, 1, 3, 3, 300, 1, 3, 3, 300, 300].map(once));
  await session.release();
});

test('results that stay on the device are not written again by later runs, and may be fed', async () => {
  const { bytes, oracle, feed } = dense();
  const session = await InferenceSession.create(bytes, { device });
  const feeds = Array.from({ length: 5 }, () => feed(2));
  const kept = [];
  for (const data of feeds) kept.push((await session.run({ x: data }, { outputLocation: 'device' })).y);
  for (const [index, y] of kept.entries()) agree(await y.getData(), oracle(feeds[index]).y);
  const data = feed(2);
  const resident = await new Tensor('float32', data, [2, 40]).to(device);
  for (let run = 0; run < 3; run++) {
    const { h } = await session.run({ x: resident });
    assert.equal(h.location, onGpu ? session.device : 'cpu');
    agree(await h.getData(), oracle(data).h);
  }
  await session.release();
});

test('memoryLimit bounds what a session takes of a GPU', async () => {
  const { bytes, oracle, feed } = dense();
  await rejects(() => InferenceSession.create(bytes, { device, memoryLimit: -1 }), 'INVALID_ARGUMENT', /memoryLimit/);
  const session = await InferenceSession.create(bytes, { device, memoryLimit: 64 << 10 });
  const data = feed(4);
  agree((await session.run({ x: data })).y.data, oracle(data).y);
  const large = feed(3000);
  if (onGpu) await rejects(() => session.run({ x: large }), 'MEMORY_LIMIT', /limit/);
  else agree((await session.run({ x: large })).y.data, oracle(large).y);
  agree((await session.run({ x: data })).y.data, oracle(data).y);
  await session.release();
});
