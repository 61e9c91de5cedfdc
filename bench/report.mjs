// Rates, shares and verdicts from timings; the table on the screen and the files in results/.
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * @typedef {import('./cases.mjs').Case} Case
 * @typedef {import('./limits.mjs').Limits} Limits
 *
 * @typedef {object} Result
 * @property {string} suite
 * @property {string} name
 * @property {number} [ms]          of one call: by the device's events where there are any, else by the host's clock
 * @property {number} [callMs]      of one call through JavaScript, several in flight
 * @property {'host' | 'device'} [clock]
 * @property {number} [spread]
 * @property {number} [rate]        FLOP/s or bytes/s
 * @property {'flops' | 'bytes'} [unit]
 * @property {number} [ofLimit]     share of the device's limit
 * @property {number} [peerMs]
 * @property {string} [peerHow]
 * @property {Record<string, number>} [peerForms]  milliseconds of each form
 * @property {number} [ofPeer]      our speed over the peer's
 * @property {import('./cases.mjs').Bar} [bar]
 * @property {boolean} [met]
 * @property {string} [skipped]     why it was not run
 */

/**
 * @param {string} suite @param {Case} one
 * @param {{ call: import('./harness.mjs').Timing, device?: import('./harness.mjs').Timing }} timing
 * @param {import('./peer.mjs').PeerTiming | undefined} peer @param {Limits} limits
 * @returns {Result}
 */
export function resultOf(suite, one, timing, peer, limits) {
  const { ms, clock, spread } = timing.device ?? timing.call;
  const unit = one.work.flops ? 'flops' : 'bytes';
  const work = one.work[unit];
  const rate = work === undefined ? undefined : work / (ms / 1000);
  const isCopy = one.op === 'upload' || one.op === 'download';
  const limit = unit === 'flops' ? floatLimit(one, limits) : isCopy ? undefined : limits.bytesPerSecond;
  const ofLimit = limit && rate !== undefined ? rate / limit : undefined;
  const ofPeer = peer && peer.ms / ms;
  return {
    suite,
    name: one.name,
    ms,
    callMs: timing.call.ms,
    clock,
    spread,
    rate,
    unit,
    ofLimit,
    peerMs: peer?.ms,
    peerHow: peer?.how,
    peerForms: peer?.forms,
    ofPeer,
    bar: one.bar,
    met: one.bar && isMet(one.bar, { ms, ofPeer, ofLimit }),
  };
}

/** Whether a bar is met; undefined where nothing tells. @param {import('./cases.mjs').Bar} bar @param {{ ms: number, ofPeer?: number, ofLimit?: number }} reached */
function isMet(bar, { ms, ofPeer, ofLimit }) {
  if (bar.of === 'clock') return ms <= bar.most;
  const speed = bar.of === 'peer' ? ofPeer : ofLimit;
  return speed === undefined ? undefined : speed >= bar.least;
}

/** The float32 peak says nothing about float64. */
const floatLimit = (/** @type {Case} */ one, /** @type {Limits} */ { flops }) => (one.type === 'float32' ? flops : undefined);

const dash = '-';
const time = (/** @type {number | undefined} */ ms) =>
  ms === undefined ? dash : ms < 1 ? `${(ms * 1000).toFixed(1)} us` : `${ms.toFixed(ms < 100 ? 2 : 0)} ms`;
const share = (/** @type {number | undefined} */ value) => (value === undefined ? dash : `${(value * 100).toFixed(0)} %`);
const times = (/** @type {number | undefined} */ value) => (value === undefined ? dash : `${value.toFixed(2)} x`);

/** @param {Result} result */
function rateText({ rate, unit }) {
  if (rate === undefined) return dash;
  if (unit === 'flops') return rate >= 1e12 ? `${(rate / 1e12).toFixed(2)} TFLOP/s` : `${(rate / 1e9).toFixed(1)} GFLOP/s`;
  return rate >= 1e12 ? `${(rate / 1e12).toFixed(2)} TB/s` : `${(rate / 1e9).toFixed(1)} GB/s`;
}

/** @param {Result} result */
function barText({ bar, met }) {
  if (!bar) return '';
  const wanted = bar.of === 'clock' ? `${bar.most} ms` : bar.of === 'peer' ? `${bar.least} x peer` : `${share(bar.least)} of limit`;
  return `${wanted}: ${met === undefined ? 'not judged' : met ? 'met' : 'MISSED'}`;
}

/**
 * The geometric mean of a suite's speeds beside the peer, as text; undefined where the suite has no bar for it or no peer ran.
 * @param {import('./cases.mjs').Suite} suite @param {Result[]} results
 */
export function meanText({ name, mean }, results) {
  const speeds = results.flatMap(({ suite, ofPeer }) => (suite === name && ofPeer ? [ofPeer] : []));
  if (mean === undefined || speeds.length === 0) return undefined;
  const reached = Math.exp(speeds.reduce((sum, speed) => sum + Math.log(speed), 0) / speeds.length);
  return `Geometric mean of ${speeds.length} cases: ${times(reached)} peer, wanted ${mean}: ${reached >= mean ? 'met' : 'MISSED'}`;
}

export const COLUMNS = ['case', 'time', 'call', 'rate', 'of limit', 'peer', 'speed / peer', 'bar'];

/** @param {Result} result @returns {string[]} */
export function cellsOf(result) {
  if (result.skipped) return [result.name, dash, dash, `skipped: ${result.skipped}`, dash, dash, dash, barText(result)];
  const { name, ms, callMs, ofLimit, peerMs, ofPeer } = result;
  return [name, time(ms), time(callMs), rateText(result), share(ofLimit), time(peerMs), times(ofPeer), barText(result)];
}

/** One line of the table on the screen. @param {string[]} cells @param {number} nameWidth */
export function screenLine(cells, nameWidth) {
  const [name, ...rest] = cells;
  const widths = [10, 10, 15, 9, 10, 13];
  return `  ${name.padEnd(nameWidth)}${rest.map((cell, i) => (i < widths.length ? cell.padStart(widths[i]) : `  ${cell}`)).join('')}`.trimEnd();
}

/**
 * @typedef {object} Report
 * @property {string} date
 * @property {string} commit
 * @property {Record<string, unknown>} device
 * @property {string} [driver]
 * @property {string} node
 * @property {Record<string, unknown> | undefined} peer
 * @property {Record<string, unknown> | undefined} networkPeer
 * @property {Limits} limits
 * @property {Result[]} results
 */

/** @param {Report} report @param {import('./cases.mjs').Suite[]} suites */
export function markdownOf({ date, commit, device, driver, node, peer, networkPeer, limits, results }, suites) {
  const peers = [peer, networkPeer].flatMap((one) => (one ? [one.name] : []));
  const lines = [
    `# ${device.name}, ${date}`,
    '',
    `Commit ${commit}, driver ${driver ?? 'none'}, Node ${node}, peer ${peers.join(', ') || 'none'}.`,
    '"time" is the device\'s own where a GPU is measured, "call" is one call through JavaScript with several in flight.',
    `Limits: ${limits.source}.`,
  ];
  for (const suite of suites) {
    const { name, title } = suite;
    const rows = results.filter((result) => result.suite === name).map((result) => `| ${cellsOf(result).join(' | ')} |`);
    if (rows.length === 0) continue;
    lines.push('', `## ${title}`, '', `| ${COLUMNS.join(' | ')} |`, `|${' --- |'.repeat(COLUMNS.length)}`, ...rows);
    const mean = meanText(suite, results);
    if (mean) lines.push('', `${mean}.`);
  }
  return `${lines.join('\n')}\n`;
}

/**
 * Writes FILE.json and FILE.md.
 * @param {string} file  path of the JSON file @param {Report} report @param {import('./cases.mjs').Suite[]} suites
 */
export async function save(file, report, suites) {
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, `${JSON.stringify(report, null, 2)}\n`);
  await writeFile(file.replace(/(\.json)?$/, '.md'), markdownOf(report, suites));
}
