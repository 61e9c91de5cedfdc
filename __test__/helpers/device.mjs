import * as warpwright from '../../index.mjs';

/** Where the cases run: cpu, cuda, cuda:N. */
export const device = process.env.WARPWRIGHT_TEST_DEVICE ?? 'cpu';

export const onGpu = device.startsWith('cuda');

/** Fails, rather than skips, where the device asked for is not there. */
export function requireDevice() {
  if (!onGpu) return;
  const status = warpwright.gpuStatus();
  if (!status.available) {
    throw new Error(`WARPWRIGHT_TEST_DEVICE is ${device}, but the GPU is not available: ${status.code}: ${status.reason}`);
  }
  const id = device === 'cuda' ? 'cuda:0' : device;
  const ids = warpwright.devices().map((info) => info.id);
  if (!ids.includes(id)) throw new Error(`WARPWRIGHT_TEST_DEVICE is ${device}, but the devices are ${ids.join(', ')}`);
}

/** The location that tensors on the test device report. */
export const location = device === 'cuda' ? 'cuda:0' : device;
