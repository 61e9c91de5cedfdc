// The product on emulated cards, each in a process of its own: what the driver may do, and what becomes of it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { emulate, emulateClean, emulatorWithout, library, requireEmulator } from './helpers/emulator.mjs';

test('the emulator is built', requireEmulator);

/** In children: what a call gives, or its error. */
const outcome = `
  const f32 = (...values) => Float32Array.from(values);
  const plain = (value) => (value?.dims ? { location: value.location, dims: value.dims } : ArrayBuffer.isView(value) ? [...value] : value);
  const outcome = (call) => Promise.resolve().then(call).then(plain, (e) => ({ code: e.code, message: e.message }));
  const { Tensor, relu, add, matmul, init, devices, gpuStatus, memoryStats, trimMemory } = warpwright;
`;

test('the emulated card is listed', async () => {
  const config = 'cc=75,memory=256M,multiprocessors=12,driver=12.2';
  const { list, status } = await emulateClean(config, 'report({ list: warpwright.devices(), status: warpwright.gpuStatus() });');
  assert.deepEqual(list.map((info) => info.id), ['cuda:0', 'cpu']);
  const { name, computeCapability, multiprocessors, totalMemory } = list[0];
  assert.deepEqual({ name, computeCapability, multiprocessors, totalMemory },
    { name: 'Emulated sm_75', computeCapability: '7.5', multiprocessors: 12, totalMemory: 256 * 2 ** 20 });
  assert.equal(status.available, true);
  assert.equal(status.cudaVersion, '12.2');
  assert.equal(status.library, library);
});

for (const capability of [75, 80, 90]) {
  test(`an op and tensors at compute capability ${capability}`, async () => {
    const { value, findings, end } = await emulate(`cc=${capability}`, `${outcome}
      await init('cuda');
      const x = await new Tensor('float32', f32(-1, 0, 2), [3]).to('cuda');
      const y = await relu(x);
      report({
        plain: await outcome(() => relu(f32(-3, 4), { device: 'cuda' })),
        host: plain(await relu(new Tensor('float32', f32(-3, 4), [2]), { device: 'cuda' })),
        tensor: plain(y),
        data: [...await y.getData()],
        back: [...(await y.to('cpu')).data],
        free: typeof devices()[0].freeMemory,
      });`);
    assert.deepEqual(findings, []);
    assert.deepEqual(value, {
      plain: [0, 4],
      host: { location: 'cpu', dims: [2] },
      tensor: { location: 'cuda:0', dims: [3] },
      data: [0, 0, 2],
      back: [0, 0, 2],
      free: 'number',
    });
    assert.equal(end.launches.relu_f32, 3);
    assert.equal(end.compute_capability, capability);
  });
}

test('what is disposed and trimmed leaves nothing on the card', async () => {
  const { findings, end } = await emulate('exit-leaks=on', `${outcome}
    const x = await new Tensor('float32', new Float32Array(1 << 20), [1 << 20]).to('cuda');
    const y = await relu(x);
    x.dispose();
    y.dispose();
    await trimMemory('cuda:0');
    report(memoryStats('cuda:0').used);`);
  assert.deepEqual(findings, []);
  assert.deepEqual([end.live[0].allocations, end.live[0].pinned], [0, 0]);
});

test('a memory limit', async () => {
  const value = await emulateClean('', `${outcome}
    await init('cuda', { memoryLimit: 1 << 20 });
    const wanted = await outcome(() => relu(new Float32Array(1 << 20), { device: 'cuda' }));
    report([wanted, await outcome(() => relu(f32(-1, 5), { device: 'cuda' }))]);`);
  assert.equal(value[0].code, 'MEMORY_LIMIT');
  assert.deepEqual(value[1], [0, 5]);
});

test('a card with little memory', async () => {
  const value = await emulateClean('memory=4M', `${outcome}
    const wanted = await outcome(() => relu(new Float32Array(1 << 20), { device: 'cuda' }));
    report([wanted, await outcome(() => relu(f32(-1, 5), { device: 'cuda' }))]);`);
  assert.equal(value[0].code, 'OUT_OF_MEMORY');
  assert.match(value[0].message, /cuMemAlloc_v2 failed: error 2 \(out of memory\)/);
  assert.deepEqual(value[1], [0, 5]);
});

test('the k-th allocation fails', async () => {
  // A first failure gives back what is kept and asks again.
  for (const [fail, good] of [['fail=cuMemAlloc_v2:2:2', true], ['fail=cuMemAlloc_v2:2:2,fail=cuMemAlloc_v2:3:2', false]]) {
    const value = await emulateClean(fail, `${outcome}
      const call = () => outcome(() => relu(f32(-1, 5), { device: 'cuda' }));
      report([await call(), await call()]);`);
    if (good) assert.deepEqual(value[0], [0, 5]);
    else assert.equal(value[0].code, 'OUT_OF_MEMORY');
    assert.deepEqual(value[1], [0, 5]);
  }
});

test('a launch that fails loses the device, names the op, and the next call works', async () => {
  for (const [status, words] of [[700, 'an illegal memory access'], [719, 'unspecified launch failure'], [715, 'illegal instruction']]) {
    const value = await emulateClean(`fault=relu_f32:${status}:2`, `${outcome}
      const held = await new Tensor('float32', f32(-1, 5), [2]).to('cuda');
      const results = [];
      for (let i = 0; i < 3; i += 1) results.push(await outcome(() => relu(f32(-1, 5), { device: 'cuda' })));
      results.push(await outcome(() => held.getData()));
      report(results);`);
    const [first, lost, next, held] = value;
    assert.deepEqual([first, next], [[0, 5], [0, 5]]);
    assert.equal(lost.code, 'DEVICE_LOST');
    for (const part of ["'relu'", `error ${status}`, words]) assert.ok(lost.message.includes(part), lost.message);
    assert.equal(held.code, 'DEVICE_LOST', 'what was on the card is gone');
  }
});

test('a device that gets no new context after a fault stays lost', async () => {
  const value = await emulateClean('fault=relu_f32:719:1,recover=off', `${outcome}
    const results = [];
    for (let i = 0; i < 3; i += 1) results.push(await outcome(() => relu(f32(-1, 5), { device: 'cuda' })));
    report([...results, await outcome(() => relu(f32(-1, 5), { device: 'cpu' }))]);`);
  assert.deepEqual(value.slice(0, 3).map((one) => one.code), ['DEVICE_LOST', 'DEVICE_LOST', 'DEVICE_LOST']);
  assert.ok(value[0].message.includes("'relu'"), value[0].message);
  assert.ok(value[2].message.includes('restart the process'), value[2].message);
  assert.deepEqual(value[3], [0, 5]);
});

test('a driver that is too old for the kernels or for us', async () => {
  const text = `${outcome}
    report({ gpu: await outcome(() => relu(f32(-1, 5), { device: 'cuda' })), auto: await outcome(() => relu(f32(-1, 5))), status: gpuStatus() });`;
  const refused = await emulateClean('ptx=6.5', text);
  assert.equal(refused.gpu.code, 'DRIVER_TOO_OLD');
  for (const part of ['error 222', 'Unsupported .version', 'relu']) assert.ok(refused.gpu.message.includes(part), refused.gpu.message);
  const old = await emulateClean('driver=10.2', text);
  assert.equal(old.gpu.code, 'DRIVER_TOO_OLD');
  assert.match(old.gpu.message, /10\.2/);
  assert.equal(old.status.available, false);
  assert.deepEqual(old.auto, [0, 5], 'auto falls back');
});

test('no card', async () => {
  for (const config of ['devices=0', 'fail=cuInit:*:999', 'fail=cuDeviceGetCount:*:100']) {
    const value = await emulateClean(config, `${outcome}
      report({ ids: devices().map((info) => info.id), status: gpuStatus(), gpu: await outcome(() => relu(f32(1), { device: 'cuda' })), auto: await outcome(() => relu(f32(-1, 5))) });`);
    assert.deepEqual(value.ids, ['cpu'], config);
    assert.equal(value.status.code, 'GPU_UNAVAILABLE', config);
    assert.equal(value.gpu.code, 'GPU_UNAVAILABLE', config);
    assert.deepEqual(value.auto, [0, 5], config);
  }
});

test('two cards', async () => {
  const value = await emulateClean('devices=2', `${outcome}
    const host = new Tensor('float32', f32(-1, 5), [2]);
    const [a, b] = [await host.to('cuda:0'), await host.to('cuda:1')];
    report({
      ids: devices().map((info) => info.id),
      uuids: new Set(devices().map((info) => info.uuid)).size,
      mixed: await outcome(() => add(a, b)),
      other: await outcome(() => relu(a, { device: 'cuda:1' })),
      own: plain(await relu(b)),
      data: [...await (await relu(b)).getData()],
      across: await outcome(async () => [...await (await a.to('cuda:1')).getData()]),
      missing: await outcome(() => relu(f32(1), { device: 'cuda:7' })),
      moved: await outcome(() => host.to('cuda:2')),
    });`);
  assert.deepEqual(value.ids, ['cuda:0', 'cuda:1', 'cpu']);
  assert.equal(value.uuids, 3);
  assert.equal(value.mixed.code, 'INVALID_ARGUMENT');
  assert.match(value.mixed.message, /cuda:0.*cuda:1|cuda:1.*cuda:0/);
  assert.equal(value.other.code, 'INVALID_ARGUMENT');
  assert.deepEqual(value.own, { location: 'cuda:1', dims: [2] });
  assert.deepEqual([value.data, value.across], [[0, 5], [-1, 5]]);
  assert.deepEqual([value.missing.code, value.moved.code], ['DEVICE_NOT_FOUND', 'DEVICE_NOT_FOUND']);
  assert.match(value.missing.message, /'cuda:7': 2 present/);
});

test('a fault of one card leaves the other alone', async () => {
  const value = await emulateClean('devices=2,fault=relu_f32:700:1', `${outcome}
    const other = await new Tensor('float32', f32(-1, 5), [2]).to('cuda:1');
    report([await outcome(() => relu(f32(1), { device: 'cuda:0' })), await outcome(async () => [...await (await relu(other)).getData()])]);`);
  assert.equal(value[0].code, 'DEVICE_LOST');
  assert.deepEqual(value[1], [0, 5]);
});

test('a driver that lacks functions', async () => {
  const text = `${outcome} report({ status: gpuStatus(), gpu: await outcome(() => relu(f32(-1, 5), { device: 'cuda' })) });`;
  for (const symbol of ['cuMemAlloc_v2', 'cuLaunchKernel', 'cuEventDestroy_v2']) {
    const value = await emulateClean('', text, { driver: emulatorWithout([symbol]) });
    assert.equal(value.gpu.code, 'DRIVER_TOO_OLD', symbol);
    assert.ok(value.gpu.message.includes(symbol) && value.status.reason.includes(symbol), value.gpu.message);
  }
  const optional = ['cuMemAllocAsync', 'cuGraphLaunch', 'cuLaunchKernelEx', 'cuDevicePrimaryCtxReset_v2', 'cuGetProcAddress_v2'];
  const value = await emulateClean('', text, { driver: emulatorWithout(optional) });
  assert.deepEqual(value.gpu, [0, 5]);
});

test('pages that cannot be locked are copied all the same', async () => {
  const value = await emulateClean('fail=cuMemHostRegister_v2:*:801', `${outcome} report(await outcome(() => relu(f32(-1, 5), { device: 'cuda' })));`);
  assert.deepEqual(value, [0, 5]);
});

test('the order in which work runs does not matter', async () => {
  for (const config of ['schedule=eager', 'schedule=lazy', 'queue=1', 'slow=relu_f32:20']) {
    const value = await emulateClean(config, `${outcome}
      const size = (2 << 20) + 5;
      const x = Float32Array.from({ length: size }, (_, index) => (index % 7) - 3);
      const calls = Array.from({ length: 2 }, () => relu(x, { device: 'cuda' }));
      const results = await Promise.all(calls);
      report(results.every((y) => y.every((value, index) => value === Math.max(x[index], 0))));`);
    assert.equal(value, true, config);
  }
});

test('each driver call fails once: a coded error or a right result, and the next call works', async () => {
  const text = `${outcome}
    const round = async () => {
      const held = [];
      try {
        held.push(await new Tensor('float32', f32(-1, 5), [2]).to('cuda'));
        held.push(await relu(held[0]));
        return [...await held[1].getData()];
      } finally {
        for (const tensor of held) tensor.dispose();
        await trimMemory('cuda:0');
      }
    };
    report([await outcome(round), await outcome(round), await outcome(round)]);`;
  const calm = await emulate('', text);
  const used = Object.keys(calm.end.calls).filter((symbol) => !symbol.startsWith('cuGetError'));
  assert.ok(used.length > 25, used.join());
  const plans = [[1, 2], [1, 700], [2, 999]];
  const rows = used.flatMap((symbol) => plans.map(([turn, status]) => ({ symbol, turn, status })));
  const failed = [];
  const check = async ({ symbol, turn, status }) => {
    const config = `fail=${symbol}:${turn}:${status}`;
    const { value, findings, end } = await emulate(config, text).catch((error) => ({ value: [{ message: error.message }], findings: [], end: undefined }));
    const fine = (one) => JSON.stringify(one) === '[0,5]';
    const coded = (one) => typeof one.code === 'string' && one.code !== 'INTERNAL';
    // What the driver answers at its start is kept for the life of the process, and so is a lost device that gets no context.
    const lasting = ['cuInit', 'cuDriverGetVersion'].includes(symbol) || value[0].message?.includes('stays lost');
    const bad = value.filter((one) => !fine(one));
    const works = lasting || (bad.length <= 1 && fine(value[2]));
    // Memory whose free was refused stays with the driver.
    const left = symbol === 'cuMemFree_v2' ? 0 : end?.live[0]?.allocations ?? 0;
    if (!works || !bad.every(coded) || findings.length > 0 || left !== 0) failed.push({ config, value, findings, left });
  };
  const worker = async () => {
    for (let row = rows.shift(); row; row = rows.shift()) await check(row);
  };
  await Promise.all([worker(), worker(), worker()]);
  assert.deepEqual(failed, []);
});

test('aggregations beside a card run on it', async () => {
  const { value, findings, end } = await emulate('', `${outcome}
    const { aggregate } = warpwright;
    const rows = f32(1, 5, 2, 6, NaN, 7, 3, 8);
    const options = { dims: [4, 2], f: 1 };
    const x = await new Tensor('float32', rows, [4, 2]).to('cuda');
    report({
      median: await outcome(() => aggregate(rows, { ...options, rule: 'median', device: 'cuda' })),
      lower: await outcome(() => aggregate(x, { f: 1, rule: 'median', even: 'lower', nan: 'omit' })),
      auto: await outcome(() => aggregate(rows, { ...options, rule: 'trimmedMean' })),
      moved: await outcome(() => aggregate(x, { f: 1, rule: 'krum' })),
      krum: await outcome(() => aggregate(rows, { ...options, rule: 'krum', device: 'cuda' })),
      report: (await aggregate(x, { f: 1, rule: 'median', report: true, device: 'cuda' })).report,
      bound: await outcome(() => aggregate(rows, { ...options, rule: 'median', f: 2, device: 'cuda' })),
      elsewhere: await outcome(() => aggregate(x, { f: 1, rule: 'krum', device: 'cpu' })),
    });`);
  assert.deepEqual(findings, []);
  assert.deepEqual(value.median, [3, 7]);
  assert.deepEqual(value.lower, { location: 'cuda:0', dims: [2] });
  assert.deepEqual(value.auto, [2.5, 6.5]);
  assert.deepEqual(value.moved, { location: 'cuda:0', dims: [2] });
  assert.deepEqual(value.krum, [1, 5]);
  assert.deepEqual(value.report.nonFinite, [{ row: 2, coordinate: 0 }]);
  assert.match(value.bound.message, /'median' needs n > 2f, got n = 4, f = 2/);
  assert.match(value.elsewhere.message, /cuda:0/);
  const medians = Object.entries(end.launches).filter(([name]) => name.includes('median'));
  assert.equal(medians.reduce((sum, [, count]) => sum + count, 0), 3);
});
