// npm test: everything that needs no GPU. npm run test:gpu: the same cases on cuda, which fails without one.
// Steps run to the end even when one fails, and the failures are listed last.
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { root, sh } from './build.mjs';
import { buildEmulator, cargoFlags, library } from './emulator.mjs';
import { need } from './tools.mjs';

const gpu = process.argv.includes('--gpu');

/** Test files whose names match. @param {(name: string) => boolean} keep */
const files = (keep) =>
  readdirSync(join(root, '__test__'))
    .filter((name) => name.endsWith('.test.mjs') && keep(name))
    .sort()
    .map((name) => join('__test__', name));

/** Files with nothing that depends on the device, and files that only a GPU can run. */
const HOST_ONLY = /^(05|1[56]|5[0-3]|6|7)/;
const GPU_ONLY = /^(11|35|54)/;

/** @param {string[]} list @param {Record<string, string>} env */
const nodeTests = (list, env) =>
  sh(process.execPath, ['--expose-gc', '--test', '--test-reporter=spec', ...list], { env: { ...process.env, ...env } });

/**
 * Test files through the product's own loader, with every checker on: cases, sweeps, policies and models' cases where none are named.
 * @param {string} machine
 * @param {RegExp} [names]
 */
const emulated = (machine, names = /^(3[013]|43)/) =>
  nodeTests(files((name) => names.test(name)), {
    WARPWRIGHT_DRIVER: library,
    WARPWRIGHT_EMULATOR: machine,
    WARPWRIGHT_TEST_DEVICE: 'cuda',
  });

/** @type {[string, () => void][]} */
const GPU_STEPS = [
  ['tests on cuda', () => nodeTests(files((name) => !HOST_ONLY.test(name)), { WARPWRIGHT_TEST_DEVICE: 'cuda' })],
];

/** @type {[string, () => void][]} */
const STEPS = [
  ['lint', () => sh(process.execPath, ['scripts/lint.mjs'])],
  ['PTX matches its sources', () => sh('python3', ['scripts/kernels.py', '--check'])],
  ['PTX assembles', () => sh('python3', ['scripts/kernels.py', '--assemble'])],
  // The Node-API layer has no Rust tests; lint compiles it.
  ['Rust tests', () => sh('cargo', ['test', '--locked', '--quiet', '--no-default-features'])],
  ['C ABI library', () => sh('cargo', ['build', '--locked', '--release', '--no-default-features', '--target-dir', 'target/capi'])],
  ['emulator', buildEmulator],
  ['tests of the emulator', () => sh('cargo', ['test', ...cargoFlags])],
  ['ops on the emulator, compute capability 7.5', () => emulated('cc=75')],
  ['ops on the emulator, compute capability 8.0', () => emulated('cc=80')],
  ['ops on the emulator, compute capability 9.0', () => emulated('cc=90,multiprocessors=1', /^38/)],
  ['main job on the emulator, compute capability 8.0', () => emulated('cc=80', /^45/)],
  ['main job on the emulator, compute capability 9.0', () => emulated('cc=90,multiprocessors=1', /^45/)],
  ['tests on cpu', () => nodeTests(files((name) => !GPU_ONLY.test(name)), { WARPWRIGHT_TEST_DEVICE: 'cpu' })],
  ['benchmarks run', () => sh(process.execPath, ['bench/run.mjs', '--smoke', '--device', 'cpu'])],
  ['main job', () => sh(process.execPath, ['examples/ocr/index.mjs', '--device', 'cpu', '--passes', '1'])],
  ['digits example', () => sh(process.execPath, ['examples/digits/index.mjs', '--device', 'cpu', '--seconds', '1'])],
  ['generated files are current', () => sh('git', ['diff', '--exit-code', '--stat', '--', ...generated()])],
];

/** Generated files that are committed. */
function generated() {
  const all = ['native.js', 'native.d.ts', 'index.mjs', 'index.d.ts', 'index.d.mts', 'docs/ops.md', 'docs/model-support.md', 'docs/errors.md', 'kernels/ptx'];
  return all.filter((name) => existsSync(join(root, name)));
}

if (!gpu) {
  need(['cargo', 'cargo fmt', 'cargo clippy', 'cc', 'python3', 'pip', 'venv']);
  await import('./setup.mjs');
}
const failed = [];
for (const [name, step] of gpu ? GPU_STEPS : STEPS) {
  const start = Date.now();
  process.stdout.write(`\n== ${name}\n`);
  try {
    step();
    process.stdout.write(`== ${name}: done in ${((Date.now() - start) / 1000).toFixed(1)} s\n`);
  } catch (error) {
    failed.push(`${name}: ${/** @type {Error} */ (error).message}`);
  }
}
const total = (gpu ? GPU_STEPS : STEPS).length;
process.stdout.write(`\n${failed.map((line) => `FAILED ${line}\n`).join('')}`);
process.stdout.write(`steps: ${total - failed.length} passed, ${failed.length} failed\n`);
process.exitCode = failed.length > 0 ? 1 : 0;
