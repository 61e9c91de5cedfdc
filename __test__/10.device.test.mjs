import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Tensor, devices, gpuStatus, init, memoryStats, relu, trimMemory } from '../index.mjs';
import { device, onGpu, requireDevice } from './helpers/device.mjs';
import { rejects, throws } from './helpers/errors.mjs';
import { evaluate } from './helpers/process.mjs';

const x = () => new Float32Array([-1, 0, 2]);

test(`the test device ${device} is there`, requireDevice);

test('device names that mean nothing', async () => {
  for (const name of ['gpu', 'cuda:', 'cuda:-1', 'cuda:x', 'cuda:1.5', 'CUDA', '', 'cpu:0', 'cuda: 0', 'cuda:99999999999999999999']) {
    await rejects(() => relu(x(), { device: name }), ['DEVICE_NOT_FOUND', 'INVALID_ARGUMENT', 'GPU_UNAVAILABLE'], name === '' ? 'device' : name);
  }
  for (const name of [0, null, true, {}, ['cpu']]) {
    await rejects(() => relu(x(), { device: name }), ['INVALID_ARGUMENT', 'DEVICE_NOT_FOUND'], 'device');
  }
  assert.deepEqual([...await relu(x(), { device: 'cpu' })], [0, 0, 2]);
});

test('a number beyond the devices that are there', async () => {
  const wanted = gpuStatus().available ? 'DEVICE_NOT_FOUND' : gpuStatus().code;
  await rejects(() => relu(x(), { device: 'cuda:99' }), wanted);
  await rejects(() => new Tensor('float32', x(), [3]).to('cuda:99'), wanted);
  await rejects(() => init('cuda:99'), wanted);
});

test('cuda without a GPU names the missing piece, auto falls back', { skip: gpuStatus().available && 'a GPU is there' }, async () => {
  const { code, reason } = gpuStatus();
  const error = await rejects(() => relu(x(), { device: 'cuda' }), code);
  assert.ok(error.message.includes(reason.slice(0, 40)) || reason.includes(error.message.slice(0, 40)), error.message);
  await rejects(() => init('cuda'), code);
  await rejects(() => new Tensor('float32', x(), [3]).to('cuda'), code);
  assert.deepEqual([...await relu(x(), { device: 'auto' })], [0, 0, 2]);
});

test('auto and cpu resolve to a host tensor from a host tensor', async () => {
  for (const name of ['auto', 'cpu', undefined]) {
    const y = await relu(new Tensor('float32', x(), [3]), { device: name });
    assert.equal(y.location, 'cpu');
  }
});

test('memoryStats gives numbers for every device, trimMemory nothing to worry about', async () => {
  for (const { id } of devices()) {
    const stats = await memoryStats(id);
    assert.equal(typeof stats, 'object');
    const numbers = Object.values(stats).filter((value) => typeof value === 'number');
    assert.ok(numbers.length > 0);
    for (const value of numbers) assert.ok(Number.isFinite(value) && value >= 0, JSON.stringify(stats));
    await trimMemory(id);
  }
  await memoryStats();
  await trimMemory();
});

test('memoryStats and trimMemory of a device that is not there', async () => {
  const codes = ['DEVICE_NOT_FOUND', 'INVALID_ARGUMENT', 'GPU_UNAVAILABLE'];
  for (const call of [memoryStats, trimMemory]) {
    await rejects(async () => call('gpu'), codes, 'gpu');
    await rejects(async () => call(7), codes);
  }
});

test('WARPWRIGHT_DEVICE says what auto means', async () => {
  const text = `
    const error = await warpwright.relu(new Float32Array([1])).then(() => null, (e) => e);
    const cpu = await warpwright.relu(new Float32Array([1]), { device: 'cpu' });
    report({ code: error?.code, message: error?.message, cpu: [...cpu] });`;
  assert.deepEqual(await evaluate(text, { env: { WARPWRIGHT_DEVICE: 'cpu' } }), { cpu: [1] });
  const nonsense = await evaluate(text, { env: { WARPWRIGHT_DEVICE: 'toaster' } });
  assert.ok(['DEVICE_NOT_FOUND', 'INVALID_ARGUMENT'].includes(nonsense.code), JSON.stringify(nonsense));
  assert.match(nonsense.message, /toaster/);
  const hidden = await evaluate(text, { env: { WARPWRIGHT_DEVICE: 'cuda', WARPWRIGHT_DRIVER: '/nowhere/libcuda.so.1' } });
  assert.equal(hidden.code, 'GPU_UNAVAILABLE');
});

test('tensors on the test device', { skip: !onGpu && 'the test device is the CPU' }, async () => {
  const id = device === 'cuda' ? 'cuda:0' : device;
  const before = await memoryStats(id);
  const tensor = await new Tensor('float32', new Float32Array(1 << 20), [1 << 20]).to(id);
  assert.equal(tensor.location, id);
  throws(() => tensor.data, ['INVALID_ARGUMENT'], id);
  assert.equal((await tensor.getData()).length, 1 << 20);
  tensor.dispose();
  await trimMemory(id);
  assert.equal((await memoryStats(id)).used, before.used);
});
