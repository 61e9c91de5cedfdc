// Timing: warm-up, then the median of repeated measurements.

const WARM_UP_MS = 100;
const SAMPLE_MS = 20;
const SAMPLES = 9;
const MOST_CALLS = 5000;

/** @param {number[]} values */
export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/**
 * @typedef {object} Timing
 * @property {number} ms       median milliseconds of one call
 * @property {number} spread   (third quartile - first quartile) / median
 * @property {number} samples  how many measurements stand behind it
 * @property {'host' | 'device'} clock
 */

/** @param {number[]} values @param {'host' | 'device'} clock @returns {Timing} */
export function timingOf(values, clock) {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (/** @type {number} */ share) => sorted[Math.round(share * (sorted.length - 1))];
  const ms = median(values);
  return { ms, spread: (at(0.75) - at(0.25)) / ms, samples: values.length, clock };
}

/**
 * Runs `count` calls, at most `inFlight` of them at a time, and gives the milliseconds they took together.
 * @param {() => Promise<unknown>} call @param {number} count @param {number} inFlight
 */
async function timeCalls(call, count, inFlight) {
  let left = count;
  const worker = async () => {
    while (left-- > 0) await call();
  };
  const start = performance.now();
  await Promise.all(Array.from({ length: Math.min(inFlight, count) }, worker));
  return performance.now() - start;
}

/**
 * Time of one call by the host's clock, promises included, with several calls in flight.
 * @param {() => Promise<unknown>} call
 * @param {{ inFlight: number, once: boolean }} options  once: one call, no warm-up
 * @returns {Promise<Timing>}
 */
export async function timeOnHost(call, { inFlight, once }) {
  if (once) return timingOf([await timeCalls(call, 1, 1)], 'host');
  let elapsed = 0;
  while (elapsed < WARM_UP_MS) {
    elapsed += await timeCalls(call, inFlight, inFlight);
  }
  const perCall = await timeCalls(call, inFlight, inFlight) / inFlight;
  const count = Math.min(MOST_CALLS, Math.max(inFlight, Math.ceil(SAMPLE_MS / perCall)));
  const values = [];
  for (let i = 0; i < SAMPLES; i++) values.push(await timeCalls(call, count, inFlight) / count);
  return timingOf(values, 'host');
}

/**
 * Time of one call by the device's events, over calls that follow each other, as the peer is timed.
 * @param {(repeats: number, runs: number) => Promise<number[]>} measure  milliseconds of one of `runs` calls, so often
 * @param {{ once: boolean, sampleMs?: number }} options
 * @returns {Promise<Timing>}
 */
export async function timeOnDevice(measure, { once, sampleMs = SAMPLE_MS }) {
  if (once) return timingOf(await measure(1, 1), 'device');
  const perCall = median(await measure(5, 1));
  const runs = (/** @type {number} */ ms) => Math.min(MOST_CALLS, Math.ceil(ms / perCall));
  await measure(1, runs(WARM_UP_MS));
  return timingOf(await measure(SAMPLES, runs(sampleMs)), 'device');
}
