import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Tensor, add, allocPinned, devices, gpuStatus, matmul, memoryStats, neg, relu, softmax } from '../index.mjs';
import { device, location, onGpu, requireDevice } from './helpers/device.mjs';
import { rejects, throws } from './helpers/errors.mjs';
import { evaluate } from './helpers/process.mjs';

/** What only a GPU can show. */
const options = { skip: !onGpu && 'the test device is the CPU' };
const gpus = () => devices().filter((info) => info.kind === 'cuda');

test(`the test device ${device} is there`, requireDevice);

test('devices() and gpuStatus() describe the GPU', options, () => {
  const status = gpuStatus();
  assert.equal(status.available, true);
  assert.match(status.cudaVersion, /^\d+\.\d+$/);
  assert.ok(status.library.length > 0);
  gpus().forEach((info, i) => {
    assert.equal(info.id, `cuda:${i}`);
    assert.match(info.computeCapability, /^\d+\.\d$/);
    assert.ok(info.multiprocessors > 0);
    assert.ok(info.totalMemory > 2 ** 30);
  });
});

test('a chain of ops stays on the GPU', options, async () => {
  const x = await new Tensor('float32', Float32Array.from({ length: 12 }, (_, i) => i - 6), [3, 4]).to(location);
  const w = await new Tensor('float32', new Float32Array(16).fill(0.25), [4, 4]).to(location);
  const product = await matmul(x, w);
  const positive = await relu(product);
  const result = await softmax(positive, { axis: 1 });
  for (const tensor of [product, positive, result]) assert.equal(tensor.location, location);
  assert.ok((await result.getData()).every((value) => Math.abs(value - 0.25) < 1e-6));
  for (const tensor of [x, w, product, positive, result]) tensor.dispose();
});

test('an operand on the GPU decides where auto runs', options, async () => {
  const x = await new Tensor('float32', Float32Array.of(-1, 2), [2]).to(location);
  const y = await add(x, new Tensor('float32', Float32Array.of(1, 1), [2]));
  assert.equal(y.location, location);
  assert.deepEqual([...await y.getData()], [0, 3]);
});

test('host tensors and typed arrays come back to the host', options, async () => {
  const y = await relu(new Tensor('float32', Float32Array.of(-1, 2), [2]), { device });
  assert.equal(y.location, 'cpu');
  assert.deepEqual([...y.data], [0, 2]);
  assert.deepEqual([...await relu(Float64Array.of(-1, 2), { device })], [0, 2]);
});

test('the data of a GPU tensor is read by getData, not by data', options, async () => {
  const x = await new Tensor('float32', Float32Array.of(1, 2), [2]).to(location);
  throws(() => x.data, 'INVALID_ARGUMENT', 'getData');
  const into = allocPinned('float32', 2);
  assert.equal(await x.getData({ into }), into);
  assert.deepEqual([...into], [1, 2]);
  await rejects(() => x.getData({ into: allocPinned('float32', 3) }), ['INVALID_ARGUMENT', 'SHAPE_MISMATCH']);
});

test('pinned arrays go in without a copy of ours', options, async () => {
  const x = allocPinned('float32', 100_003);
  for (let i = 0; i < x.length; i++) x[i] = i;
  const y = await neg(x, { device });
  assert.equal(y[100_002], -100_002);
  const part = await neg(x.subarray(1, 70_001), { device });
  assert.equal(part[69_999], -70_000);
  const t = await new Tensor('float32', x.subarray(3), [100_000]).to(location);
  assert.equal((await t.getData())[99_999], 100_002);
});

test('memory is given back before dispose returns', options, async () => {
  const { used } = memoryStats(location);
  const x = await new Tensor('float32', new Float32Array(2 ** 22), [2 ** 22]).to(location);
  assert.ok(memoryStats(location).used >= used + 2 ** 24, JSON.stringify(memoryStats(location)));
  x.dispose();
  assert.equal(memoryStats(location).used, used);
});

test('a memory limit holds, and a smaller tensor fits afterwards', options, async () => {
  const result = await evaluate(`
    const { Tensor, init } = warpwright;
    await init(${JSON.stringify(location)}, { memoryLimit: 256 * 2 ** 20 });
    const place = (mb) => new Tensor('float32', new Float32Array(mb * 2 ** 18), [mb * 2 ** 18]).to(${JSON.stringify(location)});
    const large = await place(300).then(() => 'fits', (error) => error.code);
    const small = await place(200).then((tensor) => tensor.size, (error) => error.code);
    report({ large, small });`);
  assert.deepEqual(result, { large: 'MEMORY_LIMIT', small: 200 * 2 ** 18 });
});

test('a tensor larger than the GPU is refused, and the next call works', options, async () => {
  const huge = await new Tensor('float32', new Float32Array(2 ** 20), [2 ** 20, 1]).to(location);
  const row = await new Tensor('float32', new Float32Array(2 ** 20), [1, 2 ** 20]).to(location);
  await rejects(() => matmul(huge, row), ['OUT_OF_MEMORY', 'MEMORY_LIMIT']);
  assert.deepEqual([...await relu(Float32Array.of(-1, 2), { device })], [0, 2]);
});

test('tensors of two GPUs in one op', { skip: gpus().length < 2 && 'there is one GPU or none' }, async () => {
  const first = await new Tensor('float32', Float32Array.of(1), [1]).to('cuda:0');
  const second = await first.to('cuda:1');
  assert.equal(second.location, 'cuda:1');
  assert.deepEqual([...await second.getData()], [1]);
  await rejects(() => add(first, second), 'INVALID_ARGUMENT', 'cuda:0', 'cuda:1');
  const sum = await add(second, second);
  assert.equal(sum.location, 'cuda:1');
  assert.deepEqual([...await sum.getData()], [2]);
});
