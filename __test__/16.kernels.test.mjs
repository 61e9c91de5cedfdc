// Every kernel of the registry runs on the emulator, with all checkers on, and gives what the oracle says.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import internal from '../lib/internal.js';
import { emulate, requireEmulator } from './helpers/emulator.mjs';

/** Families whose kernels use or feed Hopper's own instructions; compute capability 9.0 is emulated for them alone. */
const HOPPER = ['conv_half', 'conv_nhwc', 'conv_planes', 'conv_split', 'gemm_double', 'gemm_half', 'gemm_split', 'split'];

/** Families that are emulated at compute capability 9.0 too, where their text is another. */
const AT_BOTH = ['gemm_direct'];

/** Kernels that a card of that capability never takes, and why. */
const NOT_TAKEN = {
  75: {
    median_f32_tile: 'rows beyond those that registers hold need more than 64 KiB of shared memory',
    median_f64_tile: 'rows beyond those that registers hold need more than 64 KiB of shared memory',
  },
  80: {
    matmul_f64_32x32: 'gemm_double has it on tensor cores',
    matmul_f64_64x64: 'gemm_double has it on tensor cores',
  },
  90: {},
};

/** The parts of the cases that a card of each capability runs, and the number of multiprocessors that they are meant for. */
const PARTS = {
  75: { several: 8, single: 1, tensorCores: 1 },
  80: { several: 8, single: 1, tensorCores: 1, directOnSeveral: 8, directOnOne: 1 },
  90: { tensorCores: 1, sharedTiles: 8, directOnSeveral: 8, directOnOne: 1 },
};

/** How fast tensor cores are beside plain ones, where small products have to find the route over them the faster one. */
const RATIO = { tensorCores: 64 };

const table = internal.kernelTable();

/** Kernels that a card of that capability could take. @param {number} capability */
function kernelsOf(capability) {
  const fitting = table.filter(({ exact, level }) => (exact ? level === capability : level <= capability));
  const here = capability === 90 ? fitting.filter(({ family }) => [...HOPPER, ...AT_BOTH].includes(family)) : fitting;
  return [...new Set(here.map(({ name }) => name))];
}

/** Runs a part of the cases; gives how often each kernel was launched. */
async function launches(capability, part) {
  const here = (path) => JSON.stringify(new URL(path, import.meta.url).href);
  const text = `
    const { levelOf } = await import(${here('cases/index.mjs')});
    const rows = (await import(${here('cases/kernels.mjs')})).${part};
    const { failures } = await import(${here('helpers/run.mjs')});
    const failed = [];
    for (const row of rows) failed.push(...await failures([row], levelOf[row.op]));
    report(failed);`;
  const ratio = part in RATIO ? `,tensor=${RATIO[part]}` : '';
  const config = `cc=${capability},multiprocessors=${PARTS[capability][part]}${ratio}`;
  const { value, findings, end } = await emulate(config, text, { env: { WARPWRIGHT_TEST_DEVICE: 'cuda' }, limit: 180_000 });
  assert.deepEqual(value, [], `${part} cases at ${capability}`);
  assert.deepEqual(findings, [], `${part} cases at ${capability}`);
  return end.launches;
}

/** Runs aggregations; gives how often each kernel was launched. The last sizes are beyond what shared memory holds. */
async function aggregations(capability) {
  const cases = JSON.stringify(new URL('cases/aggregate.mjs', import.meta.url).href);
  const text = `
    const { columns, places, references, streamed, wholes } = await import(${cases});
    const last = ${capability} === 75 ? [402] : [1201];
    report([
      ...await references('cuda'), ...await columns('cuda', [1, 2, 5, 9, 32, 65, 101, 130]), ...await columns('cuda', last, 5),
      ...await places('cuda'), ...await streamed('cuda'), ...await wholes('cuda', [5, 18, 33, 65]),
    ]);`;
  const { value, findings, end } = await emulate(`cc=${capability},multiprocessors=8`, text, { limit: 180_000 });
  assert.deepEqual(value, [], `aggregations at ${capability}`);
  assert.deepEqual(findings, [], `aggregations at ${capability}`);
  return end.launches;
}

test('the emulator is built', requireEmulator);

test('the families of a single generation are named', () => {
  const families = new Set(table.map(({ family }) => family));
  assert.deepEqual(HOPPER.filter((family) => !families.has(family)), [], 'families that are gone');
  const older = new Set(table.filter((kernel) => !kernel.exact).map(({ family }) => family));
  const missing = [...families].filter((family) => !older.has(family) && !HOPPER.includes(family));
  assert.deepEqual(missing, [], 'families that are not named');
});

test('every kernel is launched and agrees with the oracle', { concurrency: 2 }, async (t) => {
  await Promise.all(Object.keys(PARTS).map(Number).map((capability) => t.test(`at compute capability ${capability}`, async () => {
    const counts = [];
    for (const part of Object.keys(PARTS[capability])) counts.push(await launches(capability, part));
    if (capability < 90) counts.push(await aggregations(capability));
    const never = kernelsOf(capability).filter((name) => !counts.some((count) => count[name] > 0));
    assert.deepEqual(never.sort(), Object.keys(NOT_TAKEN[capability]), 'kernels that no case launches');
  })));
});

test('tensor cores that are no faster than plain ones are left alone', async () => {
  const rows = `(await import(${JSON.stringify(new URL('cases/tensor-cores.mjs', import.meta.url).href)})).cases.slice(0, 3)`;
  const text = `
    const { failures } = await import(${JSON.stringify(new URL('helpers/run.mjs', import.meta.url).href)});
    report(await failures(${rows}, 'accumulate'));`;
  for (const [ratio, taken] of [[1, false], [16, true]]) {
    const { value, findings, end } = await emulate(`cc=80,multiprocessors=1,tensor=${ratio}`, text, { env: { WARPWRIGHT_TEST_DEVICE: 'cuda' } });
    assert.deepEqual([...value, ...findings], []);
    assert.equal(end.launches.rates_f32, 1, 'a card is measured once');
    assert.equal(Object.keys(end.launches).some((name) => name.includes('mma')), taken, `at ${ratio}: ${Object.keys(end.launches)}`);
  }
});
