// npm run test:onnx: the cases of ONNX's own suite. `__test__/onnx/not-passed.txt` lists those that are not passed,
// `__test__/onnx/host-only.txt` those that are not wholly on a GPU, with reasons; both are compared both ways.
//   --device cuda        on a GPU instead of the CPU
//   --emulated cc=80     on the emulator of that machine (without the large networks)
//   --pack FOLDER        makes a folder to take to a machine with a GPU: `FOLDER/run` there writes result.txt
//   --result FILE        compares what such a run has written
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { listed } from '../__test__/helpers/conformance.mjs';
import { root, sh } from './build.mjs';
import { KINDS, fetchCases, suite } from './cases.mjs';
import { buildEmulator, library } from './emulator.mjs';
import { need } from './tools.mjs';

const LISTS = { FAIL: '__test__/onnx/not-passed.txt', HOST: '__test__/onnx/host-only.txt' };
const program = join(root, 'target/release/examples/conformance');

/** @typedef {{ outcome: string, name: string, line: string }} Outcome */

/** @param {string} text @returns {Outcome[]} */
function outcomes(text) {
  const lines = text.split('\n').filter((line) => /^(PASS|HOST|FAIL) /.test(line));
  return lines.map((line) => ({ outcome: line.slice(0, 4), name: line.slice(5).split(':')[0], line }));
}

/**
 * Runs the cases whose names contain one of the parts; all where there is none.
 * @param {string} device
 * @param {string[]} [parts]
 * @param {string} [kind] the folder of one kind
 * @param {Record<string, string>} [env]
 */
export function conformance(device, parts = [], kind = '', env = {}) {
  sh('cargo', ['build', '--release', '--quiet', '--no-default-features', '--example', 'conformance']);
  const text = execFileSync(program, [join(suite, kind), '--device', device, ...parts], { encoding: 'utf8', maxBuffer: 1 << 28, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'ignore'] });
  return outcomes(text);
}

/**
 * What a run and a list do not agree on.
 * @param {Outcome[]} run
 * @param {'FAIL' | 'HOST'} outcome
 * @returns {string[]}
 */
function disagreements(run, outcome) {
  const list = listed(readFileSync(join(root, LISTS[outcome]), 'utf8'));
  const news = run.filter((one) => one.outcome === outcome && !list.has(one.name)).map(({ line }) => `not in ${LISTS[outcome]}: ${line}`);
  const gone = run.filter((one) => one.outcome !== outcome && list.has(one.name));
  return [...news, ...gone.map(({ name, outcome: other }) => `to be taken off ${LISTS[outcome]}: ${name} (${other})`)];
}

/** @param {Outcome[]} run @param {boolean} gpu */
function report(run, gpu) {
  const count = (/** @type {string} */ outcome) => run.filter((one) => one.outcome === outcome).length;
  console.log(`${run.length} cases: ${count('PASS')} passed, ${count('HOST')} with steps on the host, ${count('FAIL')} not`);
  const problems = [...disagreements(run, 'FAIL'), ...(gpu ? disagreements(run, 'HOST') : [])];
  for (const line of problems) console.log(line);
  if (problems.length > 0 || count('PASS') === 0) process.exitCode = 1;
}

/** A folder with the program, the cases and a script that runs them. @param {string} folder */
function packed(folder) {
  mkdirSync(folder, { recursive: true });
  copyFileSync(program, join(folder, 'conformance'));
  sh('tar', ['-cJf', join(folder, 'cases.tar.xz'), '-C', suite, ...KINDS]);
  const lines = ['#!/bin/sh', 'set -e', 'cd "$(dirname "$0")"', 'mkdir -p cases && tar -xJf cases.tar.xz -C cases'];
  const run = './conformance cases --device "${1:-cuda}" > "${2:-result.txt}" 2> errors.txt';
  writeFileSync(join(folder, 'run'), `${[...lines, run, 'tail -n 1 "${2:-result.txt}"'].join('\n')}\n`, { mode: 0o755 });
  const sizes = ['conformance', 'cases.tar.xz'].map((name) => `${name} ${(statSync(join(folder, name)).size / 1e6).toFixed(1)} MB`);
  console.log(`${folder}: ${sizes.join(', ')}`);
}

function main() {
  /** @type {Record<string, { type: 'string' }>} */
  const options = { device: { type: 'string' }, emulated: { type: 'string' }, pack: { type: 'string' }, result: { type: 'string' } };
  const { values } = /** @type {{ values: Record<string, string | undefined> }} */ (parseArgs({ options }));
  if (values.result) return report(outcomes(readFileSync(values.result, 'utf8')), true);
  need(['cargo', 'python3']);
  fetchCases();
  if (values.pack) {
    conformance('cpu', ['test_abs']);
    return packed(values.pack);
  }
  if (values.emulated) {
    buildEmulator();
    return report(conformance('cuda', ['test_'], '', { WARPWRIGHT_DRIVER: library, WARPWRIGHT_EMULATOR: values.emulated }), true);
  }
  const device = values.device ?? 'cpu';
  report(conformance(device), device !== 'cpu');
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main();
