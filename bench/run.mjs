// npm run bench -- [suite ...] [--device cuda] [--json FILE] [--python python3] [--no-peer] [--smoke]
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import * as api from '../index.mjs';
import { SUITES } from './cases.mjs';
import { bytesPerElement, sizeOf } from './inputs.mjs';
import { limitsOf } from './limits.mjs';
import { loadDeviceTimer, measure } from './measure.mjs';
import { loadPeer } from './network-sides.mjs';
import { measureNetwork } from './networks.mjs';
import { Peer } from './peer.mjs';
import { COLUMNS, cellsOf, meanText, resultOf, save, screenLine } from './report.mjs';

const USAGE = `usage: npm run bench -- [suite ...] [options]
  suites: ${SUITES.map(({ name }) => name).join(', ')} (all by default)
  --device cpu|cuda|cuda:N|auto   what to measure (default auto)
  --json FILE                     where to write the results, with a table beside it (default bench/results/)
  --python PATH                   Python with the peers, torch and onnxruntime (default python3)
  --no-peer                       measure without a peer
  --smoke                         every case once at tiny sizes, nothing written`;
const MEMORY_SHARE = 0.7;

/** @typedef {import('./cases.mjs').Case} Case */

function readOptions() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      device: { type: 'string', default: 'auto' },
      json: { type: 'string' },
      python: { type: 'string', default: 'python3' },
      'no-peer': { type: 'boolean', default: false },
      smoke: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  const known = SUITES.map(({ name }) => name);
  const unknown = positionals.filter((name) => !known.includes(name));
  if (unknown.length > 0) throw new Error(`no such suite: ${unknown.join(', ')}; there are ${known.join(', ')}`);
  const suites = SUITES.filter(({ name }) => positionals.length === 0 || positionals.includes(name));
  return { ...values, device: /** @type {import('../index.mjs').Device} */ (values.device), python: String(values.python), suites };
}

/** Where `device` leads on this machine. @param {import('../index.mjs').Device} device */
async function resolveDevice(device) {
  await api.init(device);
  const probe = await new api.Tensor('float32', new Float32Array(1), [1]).to(device);
  const id = probe.location;
  probe.dispose();
  const info = api.devices().find((one) => one.id === id);
  if (!info) throw new Error(`${id} is not among devices()`);
  return info;
}

function commitOfCheckout() {
  if (process.env.WARPWRIGHT_COMMIT) return process.env.WARPWRIGHT_COMMIT;
  try {
    const cwd = fileURLToPath(new URL('..', import.meta.url));
    return execFileSync('git', ['rev-parse', '--short', 'HEAD'], { cwd, encoding: 'utf8', stdio: 'pipe' }).trim();
  } catch {
    return 'unknown';
  }
}

/** Why a case cannot run on this device, if so. @param {Case} one @param {import('../index.mjs').DeviceInfo} info */
function obstacle(one, info) {
  if (info.kind === 'cpu') return undefined;
  const elements = one.inputs.reduce((sum, dims) => sum + sizeOf(dims), 0);
  const bytes = 2 * elements * bytesPerElement(one.type);
  const room = Number(info.freeMemory ?? info.totalMemory) * MEMORY_SHARE;
  return bytes > room ? `needs ${(bytes / 2 ** 30).toFixed(1)} GiB` : undefined;
}

/** @typedef {{ peer?: Peer, networkPeer?: Peer, ort?: any }} Peers  ort: onnxruntime-node, the networks' peer on a CPU */

/** The peers that the suites need and this machine has. @param {ReturnType<typeof readOptions>} options @param {import('../index.mjs').DeviceInfo} info @returns {Promise<Peers>} */
async function startPeers({ smoke, suites, python, 'no-peer': alone }, { id, kind }) {
  if (smoke || alone) return {};
  const start = async (/** @type {'torch' | 'onnxruntime'} */ name) => {
    const { peer, reason } = await Peer.start({ python, device: id, name });
    console.log(peer ? `Peer: ${peer.hello.name}` : `Peer: ${name}: none (${reason})`);
    return peer;
  };
  const networks = suites.some(({ cases }) => cases.cpu.some(({ network }) => network));
  const others = suites.some(({ cases }) => cases.cuda.some(({ network }) => !network));
  const peer = others ? await start('torch') : undefined;
  if (!networks) return { peer };
  return kind === 'cpu' ? { peer, ort: loadPeer() } : { peer, networkPeer: await start('onnxruntime') };
}

/** @param {import('./cases.mjs').Suite} suite @param {Case} one @param {string} skipped */
const skip = (suite, one, skipped) => ({ suite: suite.name, name: one.name, bar: one.bar, skipped });

/**
 * @param {import('./cases.mjs').Suite} suite @param {Case} one
 * @param {{ info: import('../index.mjs').DeviceInfo, once: boolean, peers: Peers, limits: import('./limits.mjs').Limits, deviceTimer?: import('./measure.mjs').DeviceTimer }} context
 */
async function resultFor(suite, one, { info, once, peers: { peer, networkPeer, ort }, limits, deviceTimer }) {
  if (!one.network) {
    return resultOf(suite.name, one, await measure(api, one, { device: info.id, once, deviceTimer }), await peer?.time(one), limits);
  }
  const measured = await measureNetwork(api, one, { device: info.id, once, ort, peer: networkPeer });
  return measured.call ? resultOf(suite.name, one, { call: measured.call }, measured.peer, limits) : skip(suite, one, String(measured.skipped));
}

/**
 * @param {import('./cases.mjs').Suite} suite @param {Case[]} cases @param {Parameters<typeof resultFor>[2]} context
 */
async function runSuite(suite, cases, context) {
  console.log(`\n${suite.title}`);
  if (cases.length === 0) {
    console.log('  nothing to measure on this device');
    return [];
  }
  const nameWidth = Math.max(...cases.map(({ name }) => name.length)) + 1;
  console.log(screenLine(COLUMNS, nameWidth));
  const results = [];
  for (const one of cases) {
    const skipped = obstacle(one, context.info);
    const result = skipped ? skip(suite, one, skipped) : await resultFor(suite, one, context);
    console.log(screenLine(cellsOf(result), nameWidth));
    results.push(result);
  }
  const mean = meanText(suite, results);
  if (mean) console.log(`  ${mean}`);
  return results;
}

/** @param {import('./report.mjs').Result[]} results */
function printVerdict(results) {
  const judged = results.filter(({ met }) => met !== undefined);
  const missed = judged.filter(({ met }) => !met);
  console.log(`\n${results.length} cases, ${judged.length - missed.length} of ${judged.length} judged bars met`);
}

/** @param {{ date: string, commit: string }} report @param {string} device */
function fileFor({ date, commit }, device) {
  const slug = device.toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, '');
  return fileURLToPath(new URL(`results/${date}-${slug}-${commit}.json`, import.meta.url));
}

/** @param {ReturnType<typeof readOptions>} options */
async function main(options) {
  const info = await resolveDevice(options.device);
  const once = Boolean(options.smoke);
  const { driverVersion } = api.gpuStatus();
  const onGpu = info.kind !== 'cpu';
  console.log(`Device: ${info.id} (${info.name})${onGpu ? `, driver ${driverVersion}` : ''}`);
  const peers = await startPeers(options, info);
  const { peer, networkPeer, ort } = peers;
  try {
    const limits = once ? { source: 'none' } : await limitsOf(info, peer?.hello);
    const deviceTimer = onGpu ? await loadDeviceTimer() : undefined;
    const results = [];
    for (const suite of options.suites) {
      const cases = suite.cases[once ? 'smoke' : onGpu ? 'cuda' : 'cpu'];
      results.push(...(await runSuite(suite, cases, { info, once, peers, limits, deviceTimer })));
    }
    printVerdict(results);
    if (once && !options.json) return;
    const report = {
      date: new Date().toISOString().slice(0, 10),
      commit: commitOfCheckout(),
      device: { ...info },
      driver: onGpu ? driverVersion : undefined,
      node: process.versions.node,
      peer: peer?.hello,
      networkPeer: networkPeer?.hello ?? (ort && { name: `onnxruntime-node ${ort.env.versions.node}` }),
      limits,
      results,
    };
    const file = options.json ?? fileFor(report, info.name);
    await save(file, report, options.suites);
    console.log(`Written to ${file}`);
  } finally {
    await peer?.stop();
    await networkPeer?.stop();
  }
}

try {
  const options = readOptions();
  if (options.help) console.log(USAGE);
  else await main(options);
} catch (error) {
  const { code, message } = /** @type {Error & { code?: string }} */ (error);
  console.error(code ? `${code}: ${message}` : message);
  process.exitCode = 1;
}
