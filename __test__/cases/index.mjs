import { cases as attention, levels as attentionLevels } from './attention.mjs';
import { cases as cast } from './cast.mjs';
import { cases as conv } from './conv.mjs';
import { cases as elementwise } from './elementwise.mjs';
import { cases as evaluate } from './evaluate.mjs';
import { cases as gridSample } from './grid-sample.mjs';
import { cases as layout, levels as layoutLevels } from './layout.mjs';
import { cases as matmul } from './matmul.mjs';
import { cases as median } from './median.mjs';
import { cases as normalize } from './normalize.mjs';
import { cases as pool } from './pool.mjs';
import { cases as quantize, levels as quantizeLevels } from './quantize.mjs';
import { cases as recurrent } from './recurrent.mjs';
import { cases as resize, levels as resizeLevels } from './resize.mjs';
import { cases as types, levels as typeLevels } from './types.mjs';
import { cases as running, levels as runningLevels } from './running.mjs';
import { cases as reduce, levels as reduceLevels } from './reduce.mjs';

/**
 * The case table. A row is data: { op, name, inputs: [{ dims, fill, offset, type }], options, named?, dtypes?, forms?, level?, noDims? };
 * dtypes are the floats that the op takes unless they are given; an operand may have a type of its own.
 * Expressions have `text`, `names` and `of` as well; `as` and `attributes` are the op and the
 * options whose oracle is theirs.
 * `named` holds operands given as options; fills are those of helpers/random.mjs.
 */
export const cases = [...matmul, ...conv, ...pool, ...elementwise, ...types, ...evaluate, ...cast, ...layout, ...resize, ...gridSample, ...normalize, ...attention, ...quantize, ...recurrent, ...reduce, ...running, ...median];

/** Tolerance level of each op. Loosening one needs a sentence here saying why. */
export const levelOf = {
  matmul: 'accumulate',
  conv1d: 'accumulate',
  conv2d: 'accumulate',
  conv3d: 'accumulate',
  convTranspose2d: 'accumulate',
  convTranspose3d: 'accumulate',
  gridSample: 'accumulate',
  maxPool1dWithIndices: 'exact',
  maxPool2dWithIndices: 'exact',
  maxPool3dWithIndices: 'exact',
  maxPool1d: 'exact',
  maxPool2d: 'exact',
  maxPool3d: 'exact',
  averagePool1d: 'accumulate',
  averagePool2d: 'accumulate',
  averagePool3d: 'accumulate',
  globalMaxPool: 'exact',
  globalAveragePool: 'accumulate',
  softmax: 'normalized',
  logSoftmax: 'normalized',
  layerNorm: 'normalized',
  batchNorm: 'normalized',
  rmsNorm: 'normalized',
  groupNorm: 'normalized',
  ...attentionLevels,
  ...quantizeLevels,
  lstm: 'normalized',
  gru: 'normalized',
  rnn: 'normalized',
  ...reduceLevels,
  ...runningLevels,
  median: 'rounded',
  relu: 'exact',
  leakyRelu: 'function',
  elu: 'function',
  selu: 'function',
  sigmoid: 'function',
  tanh: 'function',
  gelu: 'function',
  silu: 'function',
  hardSigmoid: 'function',
  hardSwish: 'function',
  softplus: 'function',
  mish: 'function',
  clip: 'exact',
  exp: 'function',
  log: 'function',
  sqrt: 'rounded',
  erf: 'function',
  abs: 'exact',
  neg: 'exact',
  sin: 'function',
  cos: 'function',
  floor: 'exact',
  ceil: 'exact',
  round: 'exact',
  sign: 'exact',
  reciprocal: 'rounded',
  add: 'rounded',
  sub: 'rounded',
  mul: 'rounded',
  div: 'rounded',
  pow: 'function',
  max: 'exact',
  min: 'exact',
  cast: 'exact',
  evaluate: 'function',
  ...layoutLevels,
  ...resizeLevels,
  ...typeLevels,
};
