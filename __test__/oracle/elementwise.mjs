import { broadcastDims, forEachCoordinate, positionIn, sizeOf } from './array.mjs';
import { erf, erfc, pow, roundHalfEven, sigmoid, softplus } from './special.mjs';
import { chosen, wholeOp } from './whole.mjs';

/** One number in, one number out; the second argument holds the op's attributes. */
export const unary = {
  relu: (x) => (x < 0 ? 0 : x),
  leakyRelu: (x, { alpha = 0.01 }) => (x < 0 ? alpha * x : x),
  elu: (x, { alpha = 1 }) => (x < 0 ? alpha * Math.expm1(x) : x),
  selu: (x, { alpha = 1.6732631921768188, gamma = 1.0507010221481323 }) =>
    gamma * (x < 0 ? alpha * Math.expm1(x) : x),
  sigmoid: (x) => sigmoid(x),
  tanh: (x) => Math.tanh(x),
  gelu: (x, { approximate = 'none' }) => (approximate === 'tanh' ? geluTanh(x) : 0.5 * x * erfc(-x * Math.SQRT1_2)),
  silu: (x) => x * sigmoid(x),
  hardSigmoid: (x, { alpha = 0.2, beta = 0.5 }) => clamp(alpha * x + beta, 0, 1),
  hardSwish: (x) => x * clamp(x / 6 + 0.5, 0, 1),
  softplus: (x) => softplus(x),
  mish: (x) => x * Math.tanh(softplus(x)),
  clip: (x, { min = -Infinity, max = Infinity }) => clamp(x, min, max),
  exp: (x) => Math.exp(x),
  log: (x) => Math.log(x),
  sqrt: (x) => Math.sqrt(x),
  erf: (x) => erf(x),
  abs: (x) => Math.abs(x),
  neg: (x) => -x,
  sin: (x) => Math.sin(x),
  cos: (x) => Math.cos(x),
  floor: (x) => Math.floor(x),
  ceil: (x) => Math.ceil(x),
  round: (x) => roundHalfEven(x),
  sign: (x) => Math.sign(x),
  reciprocal: (x) => 1 / x,
  softsign: (x) => x / (1 + Math.abs(x)),
  celu: (x, { alpha = 1 }) => (x > 0 ? x : alpha * Math.expm1(x / alpha)),
  thresholdedRelu: (x, { alpha = 1 }) => (x <= alpha ? 0 : x),
  shrink: (x, { bias = 0, lambd = 0.5 }) => (Math.abs(x) <= lambd ? 0 : x < 0 ? x + bias : x - bias),
  tan: (x) => Math.tan(x),
  asin: (x) => Math.asin(x),
  acos: (x) => Math.acos(x),
  atan: (x) => Math.atan(x),
  sinh: (x) => Math.sinh(x),
  cosh: (x) => Math.cosh(x),
  asinh: (x) => Math.asinh(x),
  acosh: (x) => Math.acosh(x),
  atanh: (x) => Math.atanh(x),
  isNaN: (x) => Number(Number.isNaN(x)),
  isInf: (x, { detectNegative = true, detectPositive = true }) => Number((x === Infinity && detectPositive) || (x === -Infinity && detectNegative)),
};

export const binary = {
  add: (a, b) => a + b,
  sub: (a, b) => a - b,
  mul: (a, b) => a * b,
  div: (a, b) => a / b,
  pow,
  max: (a, b) => Math.max(a, b),
  min: (a, b) => Math.min(a, b),
  mod: (a, b) => a % b,
  prelu: (x, slope) => (x < 0 ? slope * x : x),
  less: (a, b) => Number(a < b),
  lessOrEqual: (a, b) => Number(a <= b),
  greater: (a, b) => Number(a > b),
  greaterOrEqual: (a, b) => Number(a >= b),
  equal: (a, b) => Number(a === b),
  notEqual: (a, b) => Number(a !== b),
};

const isFloat = (dtype) => dtype === undefined || /float/.test(dtype);

/** Sums and products inside these functions cancel, so their error is measured against a larger number. */
const unaryBound = {
  gelu: (x) => Math.abs(x),
  hardSigmoid: (x, { alpha = 0.2, beta = 0.5 }) => (Math.abs(alpha * x) <= 4 ? Math.abs(alpha * x) + Math.abs(beta) : 0),
  hardSwish: (x) => (Math.abs(x) < 4 ? x * x / 6 + Math.abs(x) / 2 : 0),
  log: () => 0,
};

/** max then min, so that min > max gives max; NaN stays NaN. */
function clamp(x, low, high) {
  return Math.min(Math.max(x, low), high);
}

function geluTanh(x) {
  if (x === -Infinity) return NaN;
  // 0.5 (1 + tanh u) is the sigmoid of 2u, which keeps its digits for negative u.
  return x * sigmoid(2 * Math.sqrt(2 / Math.PI) * (x + 0.044715 * x * x * x));
}

/** @param {string} op */
export function unaryOp(op) {
  return ([x], options = {}) => {
    if (!isFloat(x.dtype)) return wholeOp(op)([x], options);
    const total = sizeOf(x.dims);
    const data = new Float64Array(total);
    const bound = new Float64Array(total);
    for (let i = 0; i < total; i++) {
      data[i] = unary[op](x.data[i], options);
      bound[i] = unaryBound[op]?.(x.data[i], options) ?? 0;
    }
    return { data, bound, dims: x.dims };
  };
}

/** @param {string} op */
export function binaryOp(op) {
  return ([a, b], options = {}) => {
    if (!isFloat(a.dtype)) return wholeOp(op)([a, b], options);
    const dims = broadcastDims(a.dims, b.dims);
    const data = new Float64Array(sizeOf(dims));
    forEachCoordinate(dims, (coordinate, i) => {
      data[i] = binary[op](a.data[positionIn(a.dims, coordinate)], b.data[positionIn(b.dims, coordinate)]);
    });
    return { data, dims };
  };
}

/** The op that chooses. */
export function where([condition, a, b]) {
  if (!isFloat(a.dtype)) return chosen([condition, a, b]);
  const dims = [condition, a, b].map((operand) => operand.dims).reduce(broadcastDims);
  const data = new Float64Array(sizeOf(dims));
  const at = ({ data: own, dims: ownDims }, coordinate) => own[positionIn(ownDims, coordinate)];
  forEachCoordinate(dims, (coordinate, i) => {
    data[i] = at(condition, coordinate) !== 0 ? at(a, coordinate) : at(b, coordinate);
  });
  return { data, dims };
}

/** A function of one number from each operand; it may give the magnitudes summed beside its result. */
export function evaluate(operands, { of }) {
  const dims = operands.map((operand) => operand.dims).reduce(broadcastDims);
  const data = new Float64Array(sizeOf(dims));
  const bound = new Float64Array(data.length);
  forEachCoordinate(dims, (coordinate, i) => {
    const result = of(...operands.map((operand) => operand.data[positionIn(operand.dims, coordinate)]));
    [data[i], bound[i]] = Array.isArray(result) ? result : [result, 0];
  });
  return { data, dims, bound };
}

/** The activation that matmul and the convolutions apply last. */
export function activate({ activation = 'none', activationAlpha: alpha, activationBeta: beta }, value) {
  if (activation === 'none') return value;
  if (activation === 'geluTanh') return geluTanh(value);
  return unary[activation](value, { alpha, beta, gamma: beta, min: alpha, max: beta });
}
