import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import * as esm from '../index.mjs';
import { evaluate, requireProgram, root, run } from './helpers/process.mjs';

const folder = mkdtempSync(join(tmpdir(), 'warpwright-load-'));
after(() => rmSync(folder, { recursive: true, force: true }));

const probe = `
  const status = warpwright.gpuStatus();
  const ids = warpwright.devices().map((info) => info.id);
  const y = await warpwright.relu(new Float32Array([-1, 2]), { device: 'cpu' });
  const z = await warpwright.relu(new Float32Array([-1, 2]));
  const error = await warpwright.relu(new Float32Array([1]), { device: 'cuda' }).then(() => null, (e) => e);
  report({ status, ids, y: [...y], z: [...z], code: error?.code, message: error?.message });
`;

function checkWithoutGpu(result, codes = ['GPU_UNAVAILABLE', 'DRIVER_TOO_OLD', 'DRIVER_ERROR']) {
  assert.equal(result.status.available, false);
  assert.ok(codes.includes(result.status.code), JSON.stringify(result.status));
  assert.ok(result.status.reason.length > 10, 'the reason is a sentence');
  assert.deepEqual(result.ids, ['cpu']);
  assert.deepEqual(result.y, [0, 2]);
  assert.deepEqual(result.z, [0, 2], 'auto falls back');
  assert.equal(result.code, result.status.code);
}

test('CommonJS and ES modules export the same things', () => {
  const cjs = createRequire(import.meta.url)('../index.js');
  const names = Object.keys(esm).filter((name) => name !== 'default').sort();
  assert.deepEqual(Object.keys(cjs).sort(), names);
  for (const name of names) assert.equal(esm[name], cjs[name], name);
});

test('the public names of the design are there', () => {
  const functions = ['devices', 'gpuStatus', 'init', 'memoryStats', 'trimMemory', 'allocPinned', 'Tensor', 'WarpwrightError',
    'matmul', 'conv1d', 'conv2d', 'conv3d', 'convTranspose2d', 'maxPool2d', 'averagePool2d', 'globalAveragePool', 'globalMaxPool',
    'softmax', 'logSoftmax', 'layerNorm', 'batchNorm', 'reduceSum', 'reduceMean', 'reduceMax', 'reduceMin', 'reduceProd', 'reduceL1', 'reduceL2', 'reduceSumSquare', 'reduceLogSum', 'median'];
  for (const name of functions) assert.equal(typeof esm[name], 'function', name);
});

test('devices() lists the CPU last', () => {
  const list = esm.devices();
  assert.equal(list.at(-1).id, 'cpu');
  assert.equal(list.filter((info) => info.id === 'cpu').length, 1);
  for (const info of list) {
    assert.match(info.id, /^(cpu|cuda:\d+)$/);
    assert.equal(info.kind, info.id.split(':')[0]);
    assert.equal(typeof info.name, 'string');
    assert.ok(info.totalMemory > 0);
  }
});

test('gpuStatus() is plain data that says why', () => {
  const status = esm.gpuStatus();
  assert.equal(typeof status.available, 'boolean');
  if (status.available) {
    assert.match(status.cudaVersion, /^\d+\.\d+$/);
  } else {
    assert.equal(typeof status.code, 'string');
    assert.ok(status.reason.length > 10);
  }
  assert.deepEqual(JSON.parse(JSON.stringify(status)), { ...status });
});

test('init() resolves without a GPU too, for auto and cpu', async () => {
  await esm.init();
  await esm.init('cpu');
});

test('loading, listing and a CPU run print nothing', async () => {
  const result = await evaluate(`warpwright.devices(); warpwright.gpuStatus(); report([...await warpwright.relu(new Float32Array([-1, 2]), { device: 'cpu' })]);`);
  assert.deepEqual(result, [0, 2]);
});

test('import does not open the driver', async () => {
  const result = await evaluate('report(process.report.getReport().sharedObjects.filter((name) => /libcuda|nvcuda|nvidia-ml/.test(name)));');
  assert.deepEqual(result, []);
});

test('CommonJS in a fresh process', async () => {
  const text = `const w = require(${JSON.stringify(join(root, 'index.js'))}); w.relu(new Float64Array([-1, 3]), { device: 'cpu' }).then((y) => console.log(y.join()));`;
  const result = await run(process.execPath, ['-e', text]);
  assert.deepEqual([result.code, result.stdout, result.stderr], [0, '0,3\n', '']);
});

test('a driver library that is missing', async () => {
  const library = join(folder, 'missing.so');
  const result = await evaluate(probe, { env: { WARPWRIGHT_DRIVER: library } });
  checkWithoutGpu(result, ['GPU_UNAVAILABLE']);
  assert.ok(result.status.reason.includes(library), `names the file: ${result.status.reason}`);
});

test('a driver library that is text, empty or a folder', async () => {
  const text = join(folder, 'text.so');
  const empty = join(folder, 'empty.so');
  writeFileSync(text, 'not a library\n');
  writeFileSync(empty, '');
  for (const library of [text, empty, folder]) {
    const result = await evaluate(probe, { env: { WARPWRIGHT_DRIVER: library } });
    checkWithoutGpu(result, ['GPU_UNAVAILABLE']);
    assert.ok(result.message.includes(library), `names the file: ${result.message}`);
  }
});

/** Names of all driver functions in the one table of them. */
function driverFunctions() {
  const table = readFileSync(join(root, 'src/driver/table.rs'), 'utf8');
  return [...new Set(table.match(/\bcu[A-Z]\w+/g))];
}

/** A stand-in library: every function of the table gives `status`, with some of them written out. */
async function standIn(name, status, bodies, without = []) {
  await requireProgram('cc', ['--version'], 'to build stand-in driver libraries');
  const lines = driverFunctions().filter((f) => !without.includes(f)).map((f) => bodies[f] ?? `int ${f}(void) { return ${status}; }`);
  const source = join(folder, `${name}.c`);
  const library = join(folder, `${name}.so`);
  writeFileSync(source, `${lines.join('\n')}\n`);
  const built = await run('cc', ['-shared', '-fPIC', '-w', '-o', library, source]);
  assert.equal(built.code, 0, built.stderr);
  return library;
}

const version = (number) => ({ cuDriverGetVersion: `int cuDriverGetVersion(int *v) { *v = ${number}; return 0; }` });

test('a driver whose cuInit fails', async () => {
  const library = await standIn('init-fails', 999, { ...version(12040), cuInit: 'int cuInit(unsigned f) { return 999; }' });
  const result = await evaluate(probe, { env: { WARPWRIGHT_DRIVER: library } });
  checkWithoutGpu(result);
  assert.match(result.status.reason, /cuInit/);
  assert.match(result.status.reason, /999/);
});

test('a driver without a device', async () => {
  const library = await standIn('no-device', 0, { ...version(12040), cuDeviceGetCount: 'int cuDeviceGetCount(int *n) { *n = 0; return 0; }' });
  checkWithoutGpu(await evaluate(probe, { env: { WARPWRIGHT_DRIVER: library } }), ['GPU_UNAVAILABLE']);
  const refused = await standIn('init-no-device', 100, { ...version(12040) });
  checkWithoutGpu(await evaluate(probe, { env: { WARPWRIGHT_DRIVER: refused } }), ['GPU_UNAVAILABLE']);
});

test('a driver that is too old names the version found and the one needed', async () => {
  const library = await standIn('old', 0, { ...version(10010), cuDeviceGetCount: 'int cuDeviceGetCount(int *n) { *n = 1; return 0; }' });
  const result = await evaluate(probe, { env: { WARPWRIGHT_DRIVER: library } });
  checkWithoutGpu(result, ['DRIVER_TOO_OLD']);
  assert.match(result.status.reason, /10\.1/);
  assert.match(result.status.reason, /11\.0|450/);
});

test('a driver that lacks a function names it', async () => {
  const library = await standIn('lacking', 0, version(12040), ['cuLaunchKernel']);
  const result = await evaluate(probe, { env: { WARPWRIGHT_DRIVER: library } });
  checkWithoutGpu(result);
  assert.match(result.status.reason, /cuLaunchKernel/);
});
