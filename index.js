'use strict';

const { allocPinned, devices, gpuStatus, init, memoryStats, trimMemory } = require('./lib/device.js');
const { WarpwrightError } = require('./lib/errors.js');
const { ops } = require('./lib/ops.js');
const { Tensor } = require('./lib/tensor.js');

module.exports = {
  Tensor,
  WarpwrightError,
  allocPinned,
  devices,
  gpuStatus,
  init,
  memoryStats,
  trimMemory,
  ...ops,
};
