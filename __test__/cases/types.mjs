// Elementwise ops on whole numbers and bools, those whose results are bool, and the choice between operands of any type.
import { types } from './cast.mjs';

const floats = types.slice(0, 4);
const wholes = types.slice(4, 12);
const signed = wholes.slice(0, 4);
const unsigned = wholes.slice(4);

/** A case runs in one form for each type: they share their code. */
const row = (op, name, inputs, dtypes, options = {}) => ({ op, name, inputs, options, dtypes, oneForm: true });

const of = (dims, fill = 'bits', offset = 0) => ({ dims, fill, offset });

const lengths = [0, 1, 2, 7, 15, 16, 17, 33, 1025, 4099];

const broadcasts = [
  [[2, 3], [3]], [[2, 3], [2, 1]], [[2, 1], [1, 3]], [[4, 1, 5], [3, 1]], [[], []], [[], [5]], [[7, 3], []], [[0], [1]], [[3, 0], [1]], [[16, 32], [32]],
  [[16, 32], [16, 1]], [[33, 17], [33, 1]], [[2, 1, 3, 1, 2], [1, 4, 1, 5, 2]], [[3, 32, 16], [32, 1]],
  [[2, 1, 2, 1, 2, 1, 2, 1, 2, 2], [1, 2, 1, 2, 1, 2, 1, 2, 1, 2]],
];

const names = (inputs) => inputs.map(({ dims, fill, offset }) => `[${dims}] of ${fill}${offset ? ` at ${offset}` : ''}`).join(' and ');
const spelt = (options) => (Object.keys(options).length > 0 ? `, ${JSON.stringify(options)}` : '');

/** Sizes, views and broadcasting of two operands. */
function pairs(op, dtypes, options = {}, [left, right] = ['bits', 'bits']) {
  const operands = [
    ...lengths.map((n) => [of([n], left), of([n], right)]),
    ...[1, 2, 3].map((offset) => [of([1001], left, offset), of([1001], right, offset + 1)]),
    [of([48], left), of([48], right, 1)],
    [of([24, 32], left, 1), of([32], right)],
    [of([24, 32], left), of([32], right, 3)],
    ...broadcasts.map(([a, b]) => [of(a, left), of(b, right)]),
  ];
  return operands.map((inputs) => row(op, `${names(inputs)}${spelt(options)}, ${dtypes.length} types`, inputs, dtypes, options));
}

/** The same with a second operand of small numbers, on either side of 0. */
const small = (op, dtypes, options = {}) => [
  ...pairs(op, dtypes, options).slice(0, 14),
  ...pairs(op, dtypes, options, ['bits', 'integers']).slice(6),
];

const arithmetic = [
  ...['add', 'sub', 'mul', 'max', 'min', 'bitwiseAnd', 'bitwiseOr', 'bitwiseXor'].flatMap((op) => pairs(op, wholes)),
  ...['div', 'mod', 'pow', 'prelu'].flatMap((op) => small(op, wholes)),
  ...small('mod', wholes, { fmod: true }),
  ...['left', 'right'].flatMap((direction) => small('bitShift', unsigned, { direction })),
];

const comparisons = ['less', 'lessOrEqual', 'greater', 'greaterOrEqual', 'equal', 'notEqual'].flatMap((op) => [
  ...pairs(op, wholes, {}, ['bits', 'bits']),
  ...pairs(op, wholes, {}, ['integers', 'integers']).slice(4, 9),
  ...pairs(op, floats, {}, ['ties', 'ties']),
  ...pairs(op, floats, {}, ['specials', 'specials']).slice(4, 14),
]);

const logic = ['and', 'or', 'xor', 'equal', 'notEqual'].flatMap((op) => pairs(op, ['bool']));

/** One operand: sizes and views. */
const single = (op, dtypes, fill, options = {}) => [
  ...lengths.map((n) => of([n], fill)), ...[1, 2, 3].map((offset) => of([1001], fill, offset)), of([], fill), of([3, 0, 2], fill), of([3, 5, 7], fill),
].map((input) => row(op, `${names([input])}${spelt(options)}, ${dtypes.length} types`, [input], dtypes, options));

const ones = [
  ...['abs', 'sign', 'bitwiseNot'].flatMap((op) => single(op, wholes, 'bits')),
  ...['neg', 'relu'].flatMap((op) => single(op, signed, 'bits')),
  ...[{ min: -5 }, { max: 100 }, { min: 3, max: 90 }, { min: 9, max: 5 }, {}].flatMap((options) => single('clip', wholes, 'bits', options).slice(6)),
  ...single('not', ['bool'], 'bits'),
  ...single('isNaN', floats, 'specials'),
  ...[{}, { detectNegative: false }, { detectPositive: false }, { detectNegative: false, detectPositive: false }].flatMap((options) => single('isInf', floats, 'specials', options).slice(5)),
];

const remainders = [
  ...pairs('mod', floats, { fmod: true }, ['normal', 'positive']),
  ...pairs('mod', floats, { fmod: true }, ['specials', 'specials']).slice(4, 12),
  ...pairs('mod', floats, { fmod: true }, ['wide', 'positive']).slice(8, 10),
  ...pairs('prelu', floats, {}, ['normal', 'normal']),
  ...pairs('prelu', floats, {}, ['specials', 'normal']).slice(4, 12),
];

/** prelu broadcasts its second operand alone. */
const rank = (dims) => dims.length;
const covers = ([x, slope]) => rank(x.dims) >= rank(slope.dims) && slope.dims.every((dim, i) => dim === 1 || dim === x.dims[i + rank(x.dims) - rank(slope.dims)]);
const fits = ({ op, inputs }) => op !== 'prelu' || covers(inputs);

/** Dims of condition, a and b. */
const choices = [
  ...[...lengths, 70001].map((n) => [[n], [n], [n]]),
  [[16, 32], [16, 32], []], [[16, 32], [], [16, 32]], [[16, 32], [], []], [[16, 1], [16, 32], [32]], [[], [5], [5]], [[1], [4, 5], [5]], [[32], [16, 32], [16, 1]],
  [[3, 1, 5], [4, 1], [5]], [[7], [7, 1], []], [[], [], []], [[0], [1], []], [[2, 1, 3], [1, 4, 1], [2, 1, 1]], [[33, 17], [33, 1], [17]], [[64, 1], [1, 48], [64, 48]],
  [[2, 1, 2, 1, 2, 1, 2, 1, 2, 2], [1, 2, 1, 2, 1, 2, 1, 2, 1, 2], [1, 1]],
];

/** Elements are moved: floats of any kind, whole numbers with any bits. */
const where = [
  ...choices.map((dims) => [dims, [0, 0, 0]]), ...[[1, 0, 0], [0, 1, 0], [2, 1, 3], [3, 3, 3]].map((offsets) => [[[1001], [1001], [1001]], offsets]),
  [[[24, 32], [24, 32], [32]], [1, 0, 0]], [[[24, 32], [24, 32], [32]], [0, 0, 1]],
].flatMap(([dims, offsets]) => [['specials', floats], ['bits', [...wholes, 'bool']]].map(([fill, dtypes]) => {
  const inputs = dims.map((own, i) => of(own, fill, offsets[i]));
  inputs[0] = { ...inputs[0], fill: 'bits', type: 'bool' };
  return row('where', `${names(inputs)}, ${dtypes.length} types`, inputs, dtypes);
}));

export const cases = [...arithmetic, ...comparisons, ...logic, ...ones, ...remainders, ...where].filter(fits);

export const levels = {
  ...Object.fromEntries(['less', 'lessOrEqual', 'greater', 'greaterOrEqual', 'equal', 'notEqual', 'and', 'or', 'xor', 'not', 'isNaN', 'isInf', 'where', 'mod',
    'bitwiseAnd', 'bitwiseOr', 'bitwiseXor', 'bitwiseNot', 'bitShift', 'thresholdedRelu'].map((op) => [op, 'exact'])),
  prelu: 'rounded',
  shrink: 'rounded',
  ...Object.fromEntries(['softsign', 'celu', 'tan', 'asin', 'acos', 'atan', 'sinh', 'cosh', 'asinh', 'acosh', 'atanh'].map((op) => [op, 'function'])),
};
