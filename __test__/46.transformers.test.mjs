// What transformers.js asks of the runtime at Symbol.for('onnxruntime'), without transformers.js itself: sessions are made
// and run as its version 4.3 does it. examples/embeddings runs the real one.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as warpwright from '../index.mjs';
import { device, requireDevice } from './helpers/device.mjs';

test(`the test device ${device} is there`, requireDevice);

/** A whole number of protocol buffers, below 2^14. */
const varint = (number) => (number < 128 ? [number] : [(number % 128) + 128, Math.floor(number / 128)]);
/** A field of bytes, text or nested fields. */
const bytes = (number, ...parts) => {
  const content = Buffer.concat(parts.map((part) => Buffer.from(part)));
  return Buffer.from([number * 8 + 2, ...varint(content.length), ...content]);
};
const int = (number, value) => Buffer.from([number * 8, value]);
const FLOAT = 1;
const INT64 = 7;
const value = (name, type) => {
  const shape = bytes(2, bytes(1, bytes(2, 'batch')), bytes(1, int(1, 2)));
  return [bytes(1, name), bytes(2, bytes(1, int(1, type), shape))];
};

/** A model with x float32 and ids int64, both [batch, 2], that gives max(x, 0) and the ids as float32. */
const model = new Uint8Array(Buffer.concat([
  int(1, 8),
  bytes(8, int(2, 17)),
  bytes(7,
    bytes(1, bytes(1, 'x'), bytes(2, 'y'), bytes(4, 'Relu')),
    bytes(1, bytes(1, 'ids'), bytes(2, 'z'), bytes(4, 'Cast'), bytes(5, bytes(1, 'to'), int(3, FLOAT), Buffer.from([...varint(20 * 8), 2]))),
    bytes(2, 'graph'),
    bytes(11, ...value('x', FLOAT)), bytes(11, ...value('ids', INT64)),
    bytes(12, ...value('y', FLOAT)), bytes(12, ...value('z', FLOAT))),
]));

/** As onnxruntime-common's tensors look from outside: not instances of ours. */
const foreign = (type, data, dims) => ({ type, data, cpuData: data, dims, size: data.length, location: 'cpu', dataLocation: 'cpu', dispose() {} });

const create = (options) => warpwright.InferenceSession.create(model, { logSeverityLevel: 3, ...options });

test('the devices that it names for a runtime of one\'s own are none, which is our default', async () => {
  const session = await create({ executionProviders: [] });
  assert.ok(warpwright.devices().some(({ id }) => id === session.device));
  await session.release();
});

test('our own option goes through its session options', async () => {
  const session = await create({ device, executionProviders: [], freeDimensionOverrides: undefined });
  assert.ok(session.device.startsWith(device));
  await session.release();
});

test('a session takes its mark, names inputs and outputs, and describes them', async () => {
  const session = await create({ device, executionProviders: [] });
  session.config = { dtype: 'fp32', device: 'auto' };
  assert.equal(session.config.dtype, 'fp32');
  assert.ok(session.inputNames.includes('ids'));
  assert.deepEqual([...session.outputNames], ['y', 'z']);
  assert.deepEqual(session.inputMetadata.map(({ name, type, shape }) => [name, type, [...shape]]), [['x', 'float32', ['batch', 2]], ['ids', 'int64', ['batch', 2]]]);
  await session.release();
});

test('tensors of onnxruntime-common go in, tensors of ours come out, readable at once', async () => {
  const session = await create({ device, executionProviders: [] });
  const feeds = { x: foreign('float32', Float32Array.of(-1, 2, 3, -4), [2, 2]), ids: foreign('int64', BigInt64Array.of(5n, -6n, 7n, 8n), [2, 2]) };
  const results = await session.run(feeds);
  assert.deepEqual(Object.keys(results).sort(), ['y', 'z']);
  for (const [name, wanted] of [['y', [0, 2, 3, 0]], ['z', [5, -6, 7, 8]]]) {
    assert.ok(results[name] instanceof warpwright.Tensor, name);
    const { type, dims, size, location, data } = results[name];
    assert.deepEqual([type, [...dims], size, location, [...data]], ['float32', [2, 2], 4, 'cpu', wanted]);
  }
  // squeeze_ and its kind assign dims.
  results.y.dims = [1, 4];
  assert.deepEqual([[...results.y.dims], [...results.y.data]], [[1, 4], [0, 2, 3, 0]]);
  // It puts its own wrappers in their place, then disposes of them.
  results.y.dispose();
  results.y = null;
  await session.release();
});
