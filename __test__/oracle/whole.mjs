import { broadcastDims, forEachCoordinate, positionIn, sizeOf } from './array.mjs';

/** Types of whole numbers: bits, and whether they go below 0. */
export const wholes = Object.fromEntries([8, 16, 32, 64].flatMap((bits) => [[`int${bits}`, { bits, signed: true }], [`uint${bits}`, { bits, signed: false }]]));

const wrap = (x, { bits, signed }) => (signed ? BigInt.asIntN(bits, x) : BigInt.asUintN(bits, x));
const truth = (holds) => (holds ? 1n : 0n);

function modulo(a, b) {
  if (b === 0n) return 0n;
  const rest = a % b;
  return rest !== 0n && rest < 0n !== b < 0n ? rest + b : rest;
}

/** The power, modulo 2^bits; 1 / a^-n truncated. */
function power(a, n, { bits }) {
  if (n < 0n) {
    if (a === 1n) return 1n;
    return a === -1n ? (n % 2n === 0n ? 1n : -1n) : 0n;
  }
  let [result, square] = [1n, BigInt.asUintN(bits, a)];
  for (const digit of [...n.toString(2)].reverse()) {
    if (digit === '1') result = BigInt.asUintN(bits, result * square);
    square = BigInt.asUintN(bits, square * square);
  }
  return result;
}

const limit = (value, otherwise) => (Number.isFinite(value ?? NaN) ? BigInt(value) : otherwise);
const larger = (a, b) => (a > b ? a : b);
const smaller = (a, b) => (a < b ? a : b);

/** Of elements, their type and the op's options; results wrap. */
export const functions = {
  add: ([a, b]) => a + b,
  sub: ([a, b]) => a - b,
  mul: ([a, b]) => a * b,
  div: ([a, b]) => (b === 0n ? 0n : a / b),
  mod: ([a, b], _, { fmod }) => (fmod ? (b === 0n ? 0n : a % b) : modulo(a, b)),
  pow: ([a, b], type) => power(a, b, type),
  max: ([a, b]) => larger(a, b),
  min: ([a, b]) => smaller(a, b),
  prelu: ([x, slope]) => (x < 0n ? x * slope : x),
  less: ([a, b]) => truth(a < b),
  lessOrEqual: ([a, b]) => truth(a <= b),
  greater: ([a, b]) => truth(a > b),
  greaterOrEqual: ([a, b]) => truth(a >= b),
  equal: ([a, b]) => truth(a === b),
  notEqual: ([a, b]) => truth(a !== b),
  bitwiseAnd: ([a, b]) => a & b,
  bitwiseOr: ([a, b]) => a | b,
  bitwiseXor: ([a, b]) => a ^ b,
  bitwiseNot: ([x]) => ~x,
  bitShift: ([a, b], { bits }, { direction = 'left' }) => (b >= BigInt(bits) ? 0n : direction === 'left' ? a << b : a >> b),
  relu: ([x]) => larger(x, 0n),
  abs: ([x]) => (x < 0n ? -x : x),
  neg: ([x]) => -x,
  sign: ([x]) => (x < 0n ? -1n : truth(x > 0n)),
  clip: ([x], _, { min, max }) => smaller(larger(x, limit(min, x)), limit(max, larger(x, limit(min, x)))),
};

/** Of elements that hold or do not. */
const logic = {
  and: ([a, b]) => a && b,
  or: ([a, b]) => a || b,
  xor: ([a, b]) => a !== b,
  not: ([x]) => !x,
  equal: ([a, b]) => a === b,
  notEqual: ([a, b]) => a !== b,
};

/** One function over operands that are broadcast. */
function joined(operands, of) {
  const dims = operands.map((operand) => operand.dims).reduce(broadcastDims);
  const exactly = Array.from({ length: sizeOf(dims) }, () => 0n);
  forEachCoordinate(dims, (coordinate, i) => {
    exactly[i] = of(operands.map(({ view, dims: own }) => view[positionIn(own, coordinate)]));
  });
  return { exactly, dims };
}

/** The op on whole numbers or bools. @param {string} op */
export const wholeOp = (op) => (operands, options = {}) => {
  const { dtype } = operands[0];
  if (dtype === 'bool') return joined(operands, (values) => truth(logic[op](values.map((value) => value !== 0))));
  const type = wholes[dtype];
  return joined(operands, (values) => wrap(functions[op](values.map(BigInt), type, options), type));
};

/** Elements of whole numbers and bools as they are. */
export const chosen = (operands) => joined(operands, ([condition, a, b]) => BigInt(condition !== 0 ? a : b));
