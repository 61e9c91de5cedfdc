// Our side of a case: operands made, the op timed by the device's events where it can be, by the host's clock always.
import { timeOnDevice, timeOnHost } from './harness.mjs';
import { bytesPerElement, makeOperands, randomise, sizeOf } from './inputs.mjs';

const IN_FLIGHT = { least: 2, most: 16, bytes: 2 ** 30 };

/**
 * @typedef {import('./cases.mjs').Case} Case
 * @typedef {import('./harness.mjs').Timing} Timing
 * @typedef {typeof import('../index.mjs')} Api
 * @typedef {(op: string, inputs: unknown[], options: Record<string, unknown>, repeats: number, runs: number) => Promise<number[]>} DeviceTimer
 * @typedef {import('../index.mjs').Device} Device
 */

/** The package's own event timer, if this build has one. @returns {Promise<DeviceTimer | undefined>} */
export async function loadDeviceTimer() {
  try {
    const internal = await import('../lib/internal.js');
    return internal.timeOnDevice ?? internal.default?.timeOnDevice;
  } catch (error) {
    if (/** @type {{ code?: string }} */ (error).code === 'ERR_MODULE_NOT_FOUND') return undefined;
    throw error;
  }
}

/** Calls in flight at once: enough to keep a GPU busy, bounded by the memory that they hold. */
function inFlightFor(/** @type {Case} */ { work, type, inputs }, /** @type {string} */ device) {
  if (device === 'cpu') return 1;
  const held = work.bytes ?? inputs.reduce((sum, dims) => sum + sizeOf(dims), 0) * bytesPerElement(type);
  return Math.max(IN_FLIGHT.least, Math.min(IN_FLIGHT.most, Math.floor(IN_FLIGHT.bytes / held)));
}

/**
 * @param {Api} api @param {Case} one
 * @param {{ device: Device, once: boolean, deviceTimer?: DeviceTimer }} options
 * @returns {Promise<{ call: Timing, device?: Timing }>}  call: through JavaScript, promises included
 */
export async function measure(api, one, options) {
  if (one.op === 'upload') return { call: await timeUpload(api, one, options) };
  if (one.op === 'download') return { call: await timeDownload(api, one, options) };
  return timeOp(api, one, options);
}

/** Operands as the op takes them: an expression's come by name, behind its text. @param {Case} one @param {unknown[]} inputs */
function argumentsOf({ list, text, names = [] }, inputs) {
  if (text !== undefined) return [text, Object.fromEntries(names.map((name, i) => [name, inputs[i]]))];
  return list ? [inputs] : inputs;
}

/**
 * @param {Api} api @param {Case} one @param {{ device: Device, once: boolean, deviceTimer?: DeviceTimer }} options
 */
async function timeOp(api, one, { device, once, deviceTimer }) {
  const { inputs, operands, dispose } = await makeOperands(api, one, device);
  const given = argumentsOf(one, inputs);
  const options = { ...one.options, ...operands };
  const op = /** @type {Record<string, Function>} */ (/** @type {unknown} */ (api))[one.op];
  if (one.constant !== undefined) await meetAnother(api, one, device, inputs);
  try {
    const call = await timeOnHost(async () => [await op(...given, options)].flat().forEach((result) => result.dispose()), {
      inFlight: inFlightFor(one, device),
      once,
    });
    // An aggregation decides on the host between its launches.
    if (device === 'cpu' || !deviceTimer || one.op === 'aggregate') return { call };
    return { call, device: await timeOnDevice((repeats, runs) => deviceTimer(one.op, given, options, repeats, runs), { once, sampleMs: one.sampleMs }) };
  } finally {
    dispose();
  }
}

/**
 * Uses the constant operand with other partners once, after which its prepared form is kept.
 * @param {Api} api @param {Case} one @param {Device} device @param {import('../index.mjs').Tensor[]} inputs
 */
async function meetAnother(api, one, device, inputs) {
  const others = await makeOperands(api, one, device);
  const op = /** @type {Record<string, Function>} */ (/** @type {unknown} */ (api))[one.op];
  const mixed = others.inputs.map((other, index) => (index === one.constant ? inputs[index] : other));
  (await op(...mixed, { ...one.options, ...others.operands })).dispose();
  others.dispose();
}

/** @param {Api} api @param {Case} one @param {{ device: Device, once: boolean }} options */
async function timeUpload(api, one, { device, once }) {
  const [dims] = one.inputs;
  const length = sizeOf(dims);
  const data = randomise(one.memory === 'pinned' ? api.allocPinned('float32', length) : new Float32Array(length));
  const onHost = new api.Tensor('float32', data, dims);
  const call = async () => {
    const copy = await onHost.to(device);
    if (copy !== onHost) copy.dispose();
  };
  return timeOnHost(call, { inFlight: inFlightFor(one, device), once });
}

/** @param {Api} api @param {Case} one @param {{ device: Device, once: boolean }} options */
async function timeDownload(api, one, { device, once }) {
  const { inputs: [tensor], dispose } = await makeOperands(api, one, device);
  try {
    const into = one.memory === 'pinned' ? api.allocPinned(one.type, tensor.size) : undefined;
    return await timeOnHost(() => tensor.getData({ into }), { inFlight: inFlightFor(one, device), once });
  } finally {
    dispose();
  }
}
