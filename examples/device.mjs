import { devices, gpuStatus } from '../index.mjs';

/**
 * The device that was chosen, and why.
 * @param {string} asked @param {string} used
 */
export function describeDevice(asked, used) {
  const name = devices().find(({ id }) => id === used)?.name ?? 'unknown';
  if (asked !== 'auto') return `${used} (${name}), as asked`;
  if (used !== 'cpu') return `${used} (${name}), the first GPU found`;
  const { available, reason } = gpuStatus();
  const why = available ? `WARPWRIGHT_DEVICE is ${process.env.WARPWRIGHT_DEVICE}` : `no GPU: ${reason}`;
  return `cpu (${name}), because ${why}`;
}
