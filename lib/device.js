'use strict';

const { bridge, run } = require('./bridge.js');
const { dtype } = require('./dtypes.js');
const { describe, guard, invalid } = require('./errors.js');
const native = require('./load.js');

/**
 * @param {string} where
 * @param {unknown} device
 * @returns {string}
 */
function checkDevice(where, device) {
  if (device === undefined) return 'auto';
  if (typeof device !== 'string') throw invalid(`${where}: device must be a string, got ${describe(device)}`);
  return device;
}

/** Every GPU, then the CPU. Never throws. */
const devices = () => native.devices();

/** Whether a GPU can be used, and if not why. Never throws and creates no context. */
const gpuStatus = () => native.gpuStatus();

/**
 * Opens a device off the JavaScript thread, so that the first call is quick.
 * @param {string} [device]
 * @param {{ memoryLimit?: number }} [options] memoryLimit: bytes that its tensors may take, 0 for no limit
 * @returns {Promise<void>}
 */
async function init(device, options = {}) {
  const name = guard(() => native.resolveDevice(checkDevice('init', device)));
  for (const key of Object.keys(options)) {
    if (key !== 'memoryLimit') throw invalid(`init: unknown option '${key}'; known options: memoryLimit`);
  }
  const { memoryLimit } = options;
  if (memoryLimit !== undefined && typeof memoryLimit !== 'number') {
    throw invalid(`init: 'memoryLimit' must be a number of bytes, got ${describe(memoryLimit)}`);
  }
  await run((id) => bridge.synchronize(id, name));
  if (memoryLimit !== undefined) guard(() => native.setMemoryLimit(name, memoryLimit));
}

/**
 * Memory figures of a device in bytes.
 * @param {string} [device]
 */
const memoryStats = (device) => guard(() => native.memoryStats(checkDevice('memoryStats', device)));

/**
 * Returns unused memory of a device to the driver.
 * @param {string} [device]
 */
const trimMemory = (device) => guard(() => native.trimMemory(checkDevice('trimMemory', device)));

/**
 * A zeroed typed array over page-locked, 256-byte aligned memory, which a GPU reads and writes without a copy. On a
 * machine without a GPU the memory is plain. Its buffer cannot be transferred.
 * @param {string} type element type
 * @param {number} length elements
 */
function allocPinned(type, length) {
  const { Array, size } = dtype('allocPinned', type);
  if (!Number.isSafeInteger(length) || length < 0) {
    throw invalid(`allocPinned: length must be a whole number from 0 on, got ${describe(length)}`);
  }
  const { buffer, byteOffset } = guard(() => native.allocPinned(length * size));
  // Structured cloning refuses such a buffer by itself; the buffer's own methods would move its memory away.
  for (const name of ['transfer', 'transferToFixedLength']) {
    if (name in buffer) Object.defineProperty(buffer, name, { value: refuseTransfer });
  }
  return new Array(buffer, byteOffset, length);
}

function refuseTransfer() {
  throw invalid('allocPinned: its buffer cannot be transferred');
}

module.exports = { devices, gpuStatus, init, memoryStats, trimMemory, allocPinned };
