import { lengths } from './sizes.mjs';

const one = (op, name, fill, dims, options = {}, extra = {}) => ({ op, name, inputs: [{ dims, fill, offset: extra.offset }], options, ...extra.row });

/** Angles whose reduction needs more of pi than a number holds. */
const angles = [1e22, -3e15, 7e10, 5e300, 123456.789, -3e38, 16777215, 1e5];

/** What each function is given beside the common fills. */
const domains = {
  exp: [{ fill: 'uniform', scale: 60 }, { fill: 'uniform', scale: 1e-4 }],
  log: ['positive', { fill: 'uniform', scale: 1e-3, shift: 1 }],
  sqrt: ['positive'],
  sin: [{ fill: 'uniform', scale: 1000 }, angles],
  cos: [{ fill: 'uniform', scale: 1000 }, angles],
  round: ['halves'],
  floor: ['halves'],
  ceil: ['halves'],
  sigmoid: [{ fill: 'uniform', scale: 80 }],
  tanh: [{ fill: 'uniform', scale: 20 }, { fill: 'uniform', scale: 1e-4 }],
  erf: [{ fill: 'uniform', scale: 7 }, { fill: 'uniform', scale: 1e-4 }],
  gelu: [{ fill: 'uniform', scale: 8 }],
  silu: [{ fill: 'uniform', scale: 80 }],
  softplus: [{ fill: 'uniform', scale: 80 }],
  mish: [{ fill: 'uniform', scale: 60 }],
  elu: [{ fill: 'uniform', scale: 1e-4 }, { fill: 'uniform', scale: 60 }],
  selu: [{ fill: 'uniform', scale: 1e-4 }, { fill: 'uniform', scale: 60 }],
  hardSigmoid: [{ fill: 'uniform', scale: 6 }],
  hardSwish: [{ fill: 'uniform', scale: 8 }],
  celu: [{ fill: 'uniform', scale: 1e-4 }, { fill: 'uniform', scale: 60 }],
  tan: [{ fill: 'uniform', scale: 1000 }, angles],
  asin: ['uniform', { fill: 'uniform', scale: 1e-4 }],
  acos: ['uniform', { fill: 'uniform', scale: 1e-4 }],
  sinh: [{ fill: 'uniform', scale: 80 }, { fill: 'uniform', scale: 1e-4 }],
  cosh: [{ fill: 'uniform', scale: 80 }],
  asinh: [{ fill: 'uniform', scale: 1e-4 }, { fill: 'uniform', scale: 60 }],
  acosh: [{ fill: 'positive', shift: 1 }, { fill: 'uniform', scale: 1e-3, shift: 1 }],
  atanh: ['uniform', { fill: 'uniform', scale: 1e-4 }],
};

/** Attribute sets that differ from the default. */
const attributes = {
  leakyRelu: [{ alpha: 0.25 }, { alpha: 0 }, { alpha: -0.5 }],
  elu: [{ alpha: 0.5 }],
  selu: [{ alpha: 1.5, gamma: 2 }],
  gelu: [{ approximate: 'tanh' }, { approximate: 'none' }],
  hardSigmoid: [{ alpha: 0.5, beta: 0.25 }],
  celu: [{ alpha: 0.5 }, { alpha: 2 }],
  thresholdedRelu: [{ alpha: 0.25 }, { alpha: -0.5 }],
  shrink: [{ bias: 0.25, lambd: 1 }, { bias: 0.75 }],
  clip: [{ min: -0.5 }, { max: 0.5 }, { min: -0.5, max: 0.25 }, { min: 1, max: -1 }, { min: 0.5, max: 0.5 }],
};

export const unaryOps = ['relu', 'leakyRelu', 'elu', 'selu', 'sigmoid', 'tanh', 'gelu', 'silu', 'hardSigmoid', 'hardSwish', 'softplus', 'mish',
  'clip', 'exp', 'log', 'sqrt', 'erf', 'abs', 'neg', 'sin', 'cos', 'floor', 'ceil', 'round', 'sign', 'reciprocal',
  'softsign', 'celu', 'thresholdedRelu', 'shrink', 'tan', 'asin', 'acos', 'atan', 'sinh', 'cosh', 'asinh', 'acosh', 'atanh'];

/** Fills without bound hold more large angles than the oracle's library is sure of; a few stand for them. */
const unbounded = (op) => !['sin', 'cos', 'tan'].includes(op);

const unary = unaryOps.flatMap((op) => [
  ...lengths.map((n) => one(op, `${n} elements`, op === 'log' || op === 'sqrt' ? 'positive' : 'normal', [n])),
  one(op, '0-d', 0.75, []),
  one(op, 'no elements in three dimensions', 'normal', [3, 0, 2]),
  one(op, 'three dimensions', 'normal', [3, 5, 7]),
  one(op, 'without dims', 'normal', [33], {}, { row: { noDims: true, forms: ['arrays'] } }),
  ...[1, 2, 3].map((offset) => one(op, `view at offset ${offset}`, 'positive', [1001], {}, { offset })),
  one(op, 'moderate numbers', 'moderate', [500]),
  ...(unbounded(op) ? [one(op, 'special numbers', 'specials', [400]), one(op, 'huge numbers', 'huge', [100])] : []),
  one(op, 'NaN and infinity', 'all', [40]),
  ...(domains[op] ?? []).map((fill) => one(op, JSON.stringify(fill), fill, [2000])),
  ...(attributes[op] ?? []).flatMap((options) => [
    one(op, JSON.stringify(options), { fill: 'normal', scale: 2 }, [300], options),
    one(op, `${JSON.stringify(options)}, special numbers`, 'specials', [100], options),
  ]),
]);

export const binaryOps = ['add', 'sub', 'mul', 'div', 'pow', 'max', 'min'];

const two = (op, a, b, fillA = 'normal', fillB = fillA, extra = {}) => ({
  op, name: `[${a}] and [${b}] of ${JSON.stringify(fillA)} and ${JSON.stringify(fillB)}${extra.offset ? ` at offset ${extra.offset}` : ''}`, inputs: [{ dims: a, fill: fillA, offset: extra.offset }, { dims: b, fill: fillB, offset: extra.offset && extra.offset + 1 }], options: {}, ...extra.row,
});

const broadcasts = [
  [[2, 3], [3]], [[3], [2, 3]], [[2, 3], [2, 1]], [[2, 1], [1, 3]], [[4, 1, 5], [3, 1]], [[2, 3, 4, 5], [3, 1, 1]], [[2, 3, 4, 5], [1, 3, 1, 1]],
  [[], []], [[], [5]], [[7, 3], []], [[1], [9]], [[1, 1], [65]], [[0], [1]], [[3, 0], [1]], [[1, 0], [5, 1]], [[64, 65], [65]], [[129, 33], [129, 1]],
  [[2, 1, 3, 1, 2], [1, 4, 1, 5, 2]], [[33, 1], [33]], [[1, 128], [128, 1]], [[5, 1, 7, 1], [1, 6, 1, 8]],
];

const binary = binaryOps.flatMap((op) => {
  const [left, right] = op === 'pow' ? ['positive', 'normal'] : ['normal', 'normal'];
  return [
    ...lengths.map((n) => two(op, [n], [n], left, right)),
    ...broadcasts.map(([a, b]) => two(op, a, b, left, right)),
    ...[1, 2, 3].map((offset) => two(op, [1001], [1001], left, right, { offset })),
    two(op, [65], [65], left, right, { row: { noDims: true, name: 'without dims', forms: ['arrays'] } }),
    two(op, [900], [900], 'specials'),
    two(op, [30, 1], [30], 'all'),
    two(op, [200], [200], 'integers', op === 'pow' ? 'integers' : 'ties'),
    two(op, [100], [100], op === 'pow' ? 'positive' : 'huge'),
    ...(op === 'pow' ? [two(op, [300], [1], 'normal', 2), two(op, [300], [1], 'positive', 0.5), two(op, [300], [1], 'normal', 3), two(op, [300], [1], 'specials', 0)] : []),
  ];
});

export const cases = [...unary, ...binary];
