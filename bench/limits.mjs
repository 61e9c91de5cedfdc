// What the device could do at most, to hold the measured rates against.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { median } from './harness.mjs';

const COPY_BYTES = 2 ** 28;
const COPY_SAMPLES = 7;

/**
 * @typedef {object} Limits
 * @property {number} [bytesPerSecond]  read and written, of a copy
 * @property {number} [flops]           float32 multiply-adds on the plain cores, at the top clock, as two each
 * @property {string} source            where the numbers come from
 */

/** float32 lanes of one multiprocessor. */
function lanesOf(/** @type {string} */ computeCapability) {
  return ['7.0', '7.2', '7.5', '8.0'].includes(computeCapability) ? 64 : 128;
}

/** The top clock in MHz, by NVIDIA's own tool. @returns {Promise<number | undefined>} */
async function topClock(/** @type {string} */ ordinal) {
  const query = ['--query-gpu=clocks.max.sm', '--format=csv,noheader,nounits', '-i', ordinal];
  try {
    const { stdout } = await promisify(execFile)('nvidia-smi', query);
    return Number(stdout.trim()) || undefined;
  } catch {
    return undefined;
  }
}

/**
 * @param {import('../index.mjs').DeviceInfo} info @param {Record<string, any> | undefined} peer  the peer's greeting
 * @returns {Promise<Limits>}
 */
async function gpuLimits(info, peer) {
  const clock = await topClock(info.id.split(':')[1]);
  const lanes = lanesOf(String(info.computeCapability));
  return {
    bytesPerSecond: peer?.copyBytesPerSecond,
    flops: clock && Number(info.multiprocessors) * lanes * 2 * clock * 1e6,
    source: 'copy on the device measured by the peer; float32 peak from multiprocessors and top clock',
  };
}

/** @returns {Limits} */
function cpuLimits() {
  const from = new Uint8Array(COPY_BYTES).fill(1);
  const to = new Uint8Array(COPY_BYTES);
  const seconds = Array.from({ length: COPY_SAMPLES }, () => {
    const start = performance.now();
    to.set(from);
    return (performance.now() - start) / 1000;
  });
  return { bytesPerSecond: (2 * COPY_BYTES) / median(seconds), source: 'memory copy by one thread' };
}

/**
 * @param {import('../index.mjs').DeviceInfo} info @param {Record<string, any> | undefined} peer
 * @returns {Promise<Limits>}
 */
export async function limitsOf(info, peer) {
  return info.kind === 'cpu' ? cpuLimits() : gpuLimits(info, peer);
}
