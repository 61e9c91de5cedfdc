import { binaryOps, unaryOps } from './elementwise.mjs';
import { lengths } from './sizes.mjs';

/**
 * A row: the expression, what it gives for numbers (a number, or a number and the sum of the magnitudes that were added
 * on the way to it), and dims and fills of the operands by name.
 */
const row = (name, text, of, operands, extra = {}) => ({
  op: 'evaluate', name: `${text}, ${name}`, text, of, names: Object.keys(operands), inputs: Object.values(operands), options: {}, ...extra,
});

const affine = (x, w, b) => [x * w + b, Math.abs(x * w) + Math.abs(b)];
const of = (dims, fill = 'normal', offset = undefined) => ({ dims, fill, offset });

const sized = lengths.map((n) => row(`${n} elements`, 'x * w + b', affine, { x: of([n]), w: of([n]), b: of([n]) }));

const scaled = (x, w, b, s) => [Math.max(x * w + b, 0) * s, (Math.abs(x * w) + Math.abs(b)) * Math.abs(s)];

/** Dims of x, of w, of b and of s, by NumPy's rules. */
const shapes = [
  [[6, 8], [8], [8], []], [[6, 8], [6, 1], [8], [1]], [[6, 7], [7], [6, 1], []], [[2, 3, 4, 8], [3, 1, 1], [3, 1, 1], [8]],
  [[2, 3, 4, 5], [3, 1, 1], [1, 3, 1, 1], [5]], [[2, 1], [1, 3], [2, 3], []], [[4, 1, 5], [3, 1], [5], [4, 3, 5]], [[], [], [], []],
  [[], [5], [], [1]], [[7, 0, 3], [3], [7, 1, 1], []], [[0], [1], [], [1]], [[1, 1], [1, 65], [1], [1, 1]], [[64, 65], [65], [64, 1], [1]],
  [[16, 1, 16], [3, 1], [16, 3, 16], [16]], [[8], [5, 1], [5, 8], [3, 1, 1]], [[1, 128], [128, 1], [128, 128], []],
  [[2, 1, 2, 1, 2, 1, 2, 1, 2, 2], [2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 1], [1, 2, 1, 2, 1, 2, 1, 2, 1, 1], [1, 2]],
];

const broadcast = shapes.map(([x, w, b, s]) =>
  row(`[${x}], [${w}], [${b}] and [${s}]`, 'relu(x * w + b) * s', scaled, { x: of(x), w: of(w), b: of(b), s: of(s) }));

const views = [1, 2, 3].flatMap((offset) => [
  row(`views at offset ${offset}`, 'x * w + b', affine, { x: of([1001], 'normal', offset), w: of([1001], 'normal', offset + 1), b: of([1001]) }),
  row(`rows in views at offset ${offset}`, 'x * w + b', affine, { x: of([24, 32]), w: of([32], 'normal', offset), b: of([24, 1], 'normal', offset) }),
  row(`a view at offset ${offset} beside whole arrays`, 'x * w + b', affine, { x: of([24, 32], 'normal', offset), w: of([32]), b: of([24, 1]) }),
]);

const positive = (op) => op === 'log' || op === 'sqrt';

/** Attributes in the expression, and as the oracle of the op takes them. */
const attributes = {
  leakyRelu: [['x, 0.25', { alpha: 0.25 }], ['x, alpha = -1 / 2', { alpha: -0.5 }]],
  elu: [['x, alpha=0.5', { alpha: 0.5 }]],
  selu: [['x, 1.5, 2', { alpha: 1.5, gamma: 2 }]],
  gelu: [["x, approximate = 'tanh'", { approximate: 'tanh' }], ['x, "none"', {}]],
  hardSigmoid: [['x, beta=.25, alpha=0.5', { alpha: 0.5, beta: 0.25 }]],
  clip: [['x, -0.5', { min: -0.5 }], ['x, max=0.5', { max: 0.5 }], ['x, 1, -1', { min: 1, max: -1 }]],
};

/** Every op as an expression; what it gives and how exactly is the op's own. */
const single = [
  ...unaryOps.flatMap((op) => [['x', {}], ...(attributes[op] ?? [])].flatMap(([inside, options]) => [
    { fill: positive(op) ? 'positive' : { fill: 'normal', scale: 2 }, dims: [517] },
    { fill: ['sin', 'cos', 'tan'].includes(op) ? 'all' : 'specials', dims: [130] },
  ].map(({ fill, dims }) =>
    row(JSON.stringify(fill), `${op}(${inside})`, undefined, { x: of(dims, fill) }, { as: op, attributes: options })))),
  ...binaryOps.flatMap((op) => [['positive', 'normal'], ['specials', 'specials']].map(([left, right]) =>
    row(left, `${op}(a, b)`, undefined, { a: of([19, 21], left), b: of([21], right) }, { as: op }))),
  ...[['+', 'add'], ['-', 'sub'], ['*', 'mul'], ['/', 'div'], ['**', 'pow']].map(([sign, op]) =>
    row('an operator', `a ${sign} b`, undefined, { a: of([300], 'positive'), b: of([300]) }, { as: op })),
];

const truth = (condition) => (condition ? 1 : 0);
const conditions = [
  ['a < b', (a, b) => truth(a < b)], ['a <= b', (a, b) => truth(a <= b)], ['a > b', (a, b) => truth(a > b)], ['a >= b', (a, b) => truth(a >= b)],
  ['a == b', (a, b) => truth(a === b)], ['a != b', (a, b) => truth(a !== b)], ['!a', (a) => truth(a === 0)],
  ['a && b', (a, b) => truth(a !== 0 && b !== 0)], ['a || b', (a, b) => truth(a !== 0 || b !== 0)],
  ['where(a, b, -b)', (a, b) => (a !== 0 ? b : -b)], ['where(a < b && !(b == 1), a, 2)', (a, b) => (a < b && b !== 1 ? a : 2)],
].flatMap(([text, result]) => ['specials', 'ties'].map((fill) =>
  row(fill, text, result, text === '!a' ? { a: of([200], fill) } : { a: of([200], fill), b: of([200], fill) }, { level: 'exact' })));

const bool = (dims, offset) => ({ dims, fill: 'bits', type: 'bool', offset });

/** Operands that are bool, beside floats. */
const mixed = [
  ['where(m, a, b)', (m, a, b) => (m ? a : b)], ['where(m && !(a < b), a, 2)', (m, a, b) => (m && !(a < b) ? a : 2)],
  ['max(a, b) * m + !m', (m, a, b) => Math.max(a, b) * truth(m) + truth(!m)],
].flatMap(([text, result]) => [
  ...[1, 2, 7, 16, 17, 33, 1025].map((n) => [bool([n]), of([n], 'ties'), of([n], 'ties')]),
  [bool([1001], 1), of([1001], 'ties'), of([1001], 'ties')], [bool([1001], 1), of([1001], 'ties', 2), of([1001], 'ties', 3)],
  [bool([16, 32]), of([32], 'ties'), of([16, 1], 'ties')], [bool([32]), of([16, 32], 'ties'), of([16, 1], 'ties')], [bool([16, 1]), of([16, 32], 'ties'), of([], 'ties')],
  [bool([]), of([5, 3], 'ties'), of([5, 1], 'ties')], [bool([5, 1]), of([3], 'ties'), of([5, 3], 'ties')], [bool([0]), of([1], 'ties'), of([], 'ties')],
].map(([m, a, b]) => row(`[${m.dims}]${m.offset ? ' in a view' : ''}, [${a.dims}]${a.offset ? ' in a view' : ''} and [${b.dims}]`, text, result, { m, a, b },
  { level: 'exact', forms: ['tensors', 'resident'] })));

/** Precedence, numbers and equal parts. */
const written = [
  ['-a ** 2', (a) => -(a * a)], ['2 ** -a', (a) => 2 ** -a], ['a ** 2 ** 2', (a) => a ** 4], ['(a)', (a) => a], ['a', (a) => a], ['--a', (a) => a],
  ['a * (1 / 3)', (a) => a * (1 / 3)], ['pi * a', (a) => Math.PI * a], ['a * 1e3 / .5e+1', (a) => a * 200], ['+a', (a) => a],
  ['exp(a) / (exp(a) * exp(a))', (a) => Math.exp(-a)], ['min(a, Infinity)', (a) => a], ['a + NaN', () => NaN],
  ['a - 2 - a - 3', (a) => [-5, 2 * Math.abs(a) + 5]], ['a - (2 - a) * 3', (a) => [a - (2 - a) * 3, Math.abs(a) + 3 * (2 + Math.abs(a))]],
].map(([text, result]) => row('a text', text, result, { a: of([77], 'positive') }));

/** Long enough that a thread makes one element. */
const terms = Array.from({ length: 36 }, (_, i) => i);
const longText = `${'tanh('.repeat(60)}x${')'.repeat(60)} + ${terms.map((i) => `sin(x + w * ${i})`).join(' + ')}`;

function longResult(x, w) {
  const deep = Array.from({ length: 60 }).reduce(Math.tanh, x);
  // The angles' roundings, and those of the sums.
  return [terms.reduce((sum, i) => sum + Math.sin(x + w * i), deep), terms.reduce((sum, i) => sum + 2 + Math.abs(x) + Math.abs(w * i), 37)];
}

const long = [[[263], [263]], [[7, 24], [24]], [[5, 7], [5, 1]]].map(([x, w]) =>
  row('', longText, longResult, { x: of(x), w: of(w) }, { name: `sines and tangents of [${x}] and [${w}]` }));

export const cases = [...long, ...sized, ...broadcast, ...views, ...single, ...conditions, ...mixed, ...written];
