import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { evaluate, root } from './process.mjs';

/** The emulator: a driver library that runs PTX on the CPU. */
export const library = process.env.WARPWRIGHT_EMULATOR_LIBRARY ?? join(root, 'target/release/libwarpwright_emulator.so');

/** Fails, rather than skips, where the emulator was not built. */
export function requireEmulator() {
  if (!existsSync(library)) throw new Error(`${library} is not there; npm run build:emulator makes it`);
}

const folder = mkdtempSync(join(tmpdir(), 'warpwright-emulator-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
let files = 0;

/** Objects of a report. */
function readReport(path) {
  const lines = existsSync(path) ? readFileSync(path, 'utf8').split('\n').filter((line) => line !== '') : [];
  return lines.map((line) => JSON.parse(line));
}

/**
 * Runs a module that ends with `report(value)` in a process whose driver is the emulator.
 * @param {string} config as WARPWRIGHT_EMULATOR takes it
 * @param {string} text
 * @param {{ driver?: string, env?: Record<string, string | undefined>, limit?: number }} [options]
 * @returns {Promise<{ value: any, findings: any[], end: any }>} `end` tells launches, calls and what was left
 */
export async function emulate(config, text, { driver = library, env = {}, limit } = {}) {
  files += 1;
  const path = join(folder, `report-${files}.jsonl`);
  const variables = { WARPWRIGHT_DRIVER: driver, WARPWRIGHT_EMULATOR: config, WARPWRIGHT_EMULATOR_REPORT: path, WARPWRIGHT_DEVICE: undefined };
  const value = await evaluate(text, { env: { ...variables, ...env }, limit });
  const objects = readReport(path);
  return { value, findings: objects.filter((one) => one.type === 'finding'), end: objects.find((one) => one.type === 'exit') };
}

/** As `emulate`, with nothing found; gives the value. */
export async function emulateClean(config, text, options) {
  const { value, findings } = await emulate(config, text, options);
  assert.deepEqual(findings, []);
  return value;
}

/**
 * A copy of the emulator that lacks functions: their names are spoilt in its symbol table.
 * @param {string[]} symbols
 * @returns {string} its path
 */
export function emulatorWithout(symbols) {
  const bytes = readFileSync(library);
  for (const symbol of symbols) {
    const name = Buffer.from(`\0${symbol}\0`);
    let at = bytes.indexOf(name);
    assert.ok(at >= 0, `${symbol} is exported`);
    for (; at >= 0; at = bytes.indexOf(name, at + 1)) bytes.write('x', at + 1);
  }
  files += 1;
  const path = join(folder, `without-${files}.so`);
  writeFileSync(path, bytes);
  return path;
}
