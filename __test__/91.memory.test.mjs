import assert from 'node:assert/strict';
import { test } from 'node:test';
import { device, onGpu, requireDevice } from './helpers/device.mjs';
import { evaluate } from './helpers/process.mjs';

test(`the test device ${device} is there`, requireDevice);

const flags = ['--expose-gc'];
const MB = 2 ** 20;

/** Resident memory before and after 200 rounds, and the device's own count. */
const rounds = (body) => `
  const device = ${JSON.stringify(device)};
  const { Tensor } = warpwright;
  // The engine frees array buffers on a thread of its own, late on a busy machine: wait until nothing shrinks any more.
  const settle = async () => {
    let least = Infinity;
    for (let still = 0, turn = 0; still < 10 && turn < 200; turn++) {
      globalThis.gc();
      await new Promise((resolve) => { setTimeout(resolve, 20); });
      for (const one of ['cpu', device]) warpwright.trimMemory(one);
      const rss = process.memoryUsage.rss();
      still = rss < least - 2 ** 20 ? 0 : still + 1;
      least = Math.min(least, rss);
    }
  };
  const round = async () => { ${body} };
  // As many rounds as are measured: allocators keep what the deepest queue of calls once took.
  for (let i = 0; i < 200; i++) await round();
  await settle();
  const before = process.memoryUsage.rss();
  const statsBefore = await warpwright.memoryStats(device === 'cuda' ? 'cuda:0' : device);
  for (let i = 0; i < 200; i++) await round();
  await settle();
  report({ before, after: process.memoryUsage.rss(), statsBefore, statsAfter: await warpwright.memoryStats(device === 'cuda' ? 'cuda:0' : device) });
`;

const bodies = {
  'tensors made, used and disposed': `
    const a = new Tensor('float32', new Float32Array(512 * 512).fill(1), [512, 512]);
    const b = await warpwright.matmul(a, a, { device });
    const c = await warpwright.relu(b, { device });
    for (const tensor of [a, b, c]) tensor.dispose();`,
  'typed arrays in and out': `
    await warpwright.add(new Float32Array(300_000), new Float32Array(300_000), { device });`,
  'tensors moved and disposed': `
    const a = await new Tensor('float32', new Float32Array(300_000), [300_000]).to(device);
    await a.getData();
    a.dispose();`,
  'pinned memory dropped': `
    const x = warpwright.allocPinned('float32', 300_000);
    await warpwright.neg(x, { device });
    if (Math.random() < 0.2) globalThis.gc();`,
  'calls that fail': `
    await warpwright.matmul(new Float32Array(300_000), new Float32Array(4), { device, dims: [[3, 100_000], [2, 2]] }).catch(() => {});`,
  'calls that are stopped': `
    const controller = new AbortController();
    const call = warpwright.neg(new Float32Array(300_000), { device, signal: controller.signal }).catch(() => {});
    controller.abort();
    await call;`,
};

for (const [name, body] of Object.entries(bodies)) {
  test(`resident memory is stable over 200 rounds: ${name}`, async () => {
    const { before, after, statsBefore, statsAfter } = await evaluate(rounds(body), { flags, limit: 120_000 });
    const allowed = before * 1.1 + 16 * MB;
    assert.ok(after <= allowed, `grew from ${(before / MB).toFixed(0)} to ${(after / MB).toFixed(0)} MB`);
    // A call given up before the first look may still have held memory then.
    for (const name of onGpu ? ['used', 'allocations'] : []) {
      assert.ok(statsAfter[name] <= statsBefore[name], `${name}: ${statsBefore[name]} before, ${statsAfter[name]} after`);
    }
  });
}

test('tensors that nobody disposes are collected', async () => {
  const text = `
    const device = ${JSON.stringify(device)};
    const loose = async () => { await warpwright.relu(new warpwright.Tensor('float32', new Float32Array(4 * 2 ** 20), [4 * 2 ** 20]), { device }); };
    let peak = 0;
    for (let i = 0; i < 120; i++) {
      await loose();
      if (i % 10 === 9) { globalThis.gc(); await new Promise((resolve) => { setTimeout(resolve, 10); }); }
      peak = Math.max(peak, process.memoryUsage.rss());
    }
    report(peak);`;
  const peak = await evaluate(text, { flags, limit: 120_000 });
  assert.ok(peak < 1200 * MB, `peak of ${(peak / MB).toFixed(0)} MB, 3,840 MB were made`);
});

test('external memory is reported to the engine', async () => {
  const grown = await evaluate(`
    const before = process.memoryUsage();
    const kept = await warpwright.relu(new warpwright.Tensor('float32', new Float32Array(2 ** 22), [2 ** 22]), { device: 'cpu' });
    const after = process.memoryUsage();
    report({ grown: after.external - before.external, size: kept.size });`, { flags });
  assert.ok(grown.grown >= 2 ** 24, `external memory grew by ${grown.grown} bytes for a result of 16 MB`);
});
