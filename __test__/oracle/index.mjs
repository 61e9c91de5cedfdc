import * as attention from './attention.mjs';
import { cast } from './cast.mjs';
import { conv, convTranspose } from './conv.mjs';
import { binary, binaryOp, evaluate, unary, unaryOp, where } from './elementwise.mjs';
import { wholeOp } from './whole.mjs';
import * as layout from './layout.mjs';
import { resize } from './resize.mjs';
import { matmul } from './matmul.mjs';
import { median } from './median.mjs';
import { batchNorm, groupNorm, layerNorm, logSoftmax, rmsNorm, softmax } from './normalize.mjs';
import { gridSample } from './grid-sample.mjs';
import { averagePool, globalAveragePool, globalMaxPool, maxPool, maxPoolWithIndices } from './pool.mjs';
import * as quantize from './quantize.mjs';
import * as recurrent from './recurrent.mjs';
import * as running from './running.mjs';
import { indexReductions, reductions } from './reduce.mjs';

/**
 * Naive float64 forms of the ops, by the public name:
 * (operands, options) to { data, dims, bound?, length? }, where `bound` is the sum of absolute terms
 * behind each element and `length` the number of terms.
 */
export const oracle = {
  matmul,
  conv1d: conv,
  conv2d: conv,
  conv3d: conv,
  convTranspose2d: convTranspose,
  convTranspose3d: convTranspose,
  gridSample,
  maxPool1dWithIndices: maxPoolWithIndices,
  maxPool2dWithIndices: maxPoolWithIndices,
  maxPool3dWithIndices: maxPoolWithIndices,
  maxPool1d: maxPool,
  maxPool2d: maxPool,
  maxPool3d: maxPool,
  averagePool1d: averagePool,
  averagePool2d: averagePool,
  averagePool3d: averagePool,
  globalMaxPool,
  globalAveragePool,
  softmax,
  logSoftmax,
  layerNorm,
  batchNorm,
  rmsNorm,
  groupNorm,
  median,
  cast,
  evaluate,
  where,
  ...Object.fromEntries(['and', 'or', 'xor', 'not', 'bitwiseAnd', 'bitwiseOr', 'bitwiseXor', 'bitwiseNot', 'bitShift'].map((op) => [op, wholeOp(op)])),
  ...layout,
  ...attention,
  ...quantize,
  ...recurrent,
  ...running,
  resize,
  ...reductions,
  ...indexReductions,
  ...Object.fromEntries(Object.keys(unary).map((op) => [op, unaryOp(op)])),
  ...Object.fromEntries(Object.keys(binary).map((op) => [op, binaryOp(op)])),
};
