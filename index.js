'use strict';

const { aggregate } = require('./lib/aggregate.js');
const { allocPinned, devices, gpuStatus, init, memoryStats, trimMemory } = require('./lib/device.js');
const { WarpwrightError } = require('./lib/errors.js');
const { ops } = require('./lib/ops.js');
const { InferenceSession } = require('./lib/session.js');
const { Tensor } = require('./lib/tensor.js');

module.exports = {
  InferenceSession,
  Tensor,
  WarpwrightError,
  aggregate,
  allocPinned,
  devices,
  gpuStatus,
  init,
  memoryStats,
  trimMemory,
  ...ops,
};
