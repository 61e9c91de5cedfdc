import { types } from './cast.mjs';

const row = (op, name, shapes, options = {}, extra = {}) => ({
  op, name, options, dtypes: extra.dtypes, inputs: shapes.map((dims) => ({ dims, fill: extra.fill ?? 'normal', offset: extra.offset })),
});

/** Element types of each size, where a case is about how elements are moved. */
const sizes = ['float32', 'float64', 'float16', 'uint8'];
const every = { fill: 'wholes', dtypes: types };

/** Every order of the axes of `rank`. */
function orders(rank) {
  if (rank === 0) return [[]];
  return orders(rank - 1).flatMap((order) => Array.from({ length: rank }, (_, at) => [...order.slice(0, at), rank - 1, ...order.slice(at)]));
}

const turn = (dims, perm, extra = {}) => row('transpose', `[${dims}] to ${perm}${extra.offset ? ', view' : ''}`, [dims], { perm }, { fill: 'wholes', dtypes: sizes, ...extra });

const transposes = [
  row('transpose', 'any type', [[3, 5, 2]], {}, every),
  ...orders(4).map((perm) => turn([3, 5, 2, 7], perm)),
  // Whole tiles, tiles whose runs are whole, ragged ones, more than one of each.
  ...[[64, 64], [32, 36], [65, 63], [33, 130], [200, 132], [1, 70], [70, 1], [1001, 3]].map((dims) => turn(dims, [1, 0])),
  turn([68, 72], [1, 0], { offset: 1 }),
  turn([65, 63], [1, 0], { offset: 1 }),
  turn([2, 40, 3, 36], [0, 3, 2, 1]),
  turn([2, 40, 3, 36], [2, 3, 0, 1]),
  turn([3, 33, 45, 2], [0, 2, 1, 3]),
  turn([3, 33, 45, 4], [2, 1, 0, 3]),
  turn([2, 3, 4, 16], [0, 2, 1, 3]),
  turn([2, 3, 50, 41], [0, 2, 3, 1]),
  // Few channels: whole runs over more than one block, runs that are not whole, too few of them, views.
  ...[2, 3, 4, 5].flatMap((channels) => [[2, channels, 4112], [3, channels, 513], [2, channels, 96]].flatMap((dims) => [
    turn(dims, [0, 2, 1]),
    turn([dims[0], dims[2], dims[1]], [0, 2, 1]),
  ])),
  turn([3, 528], [1, 0], { offset: 1 }),
  turn([528, 3], [1, 0], { offset: 1 }),
  turn([2, 3, 4, 528], [2, 0, 3, 1]),
  turn([256, 128], [1, 0]),
  turn([257, 129], [1, 0]),
  turn([2, 1, 2, 1, 2, 3, 2, 2, 3, 2, 2], [10, 3, 8, 1, 6, 5, 4, 7, 2, 9, 0]),
  turn([2, 2, 2, 2, 2, 2, 2, 2, 2, 2], [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]),
  turn([5, 4], [-1, 0]),
  turn([], []),
  turn([3, 0, 2], [2, 0, 1]),
  row('transpose', 'special numbers', [[40, 33]], {}, { fill: 'specials' }),
  row('transpose', 'more matrices than a grid has in y', [[65537, 2, 3]], { perm: [0, 2, 1] }, { dtypes: ['float32'] }),
];

const cut = (name, dims, starts, ends, axes, steps, extra = {}) => row('slice', name, [dims], {
  starts, ends, ...(axes ? { axes } : {}), ...(steps ? { steps } : {}),
}, { fill: 'wholes', dtypes: sizes, ...extra });

const slices = [
  cut('backwards from before the first element', [2, 3], [-3], [-3], [0], [-1]),
  row('slice', 'any type', [[6, 7]], { starts: [1, -3], ends: [5, 100] }, every),
  cut('rows', [40, 24], [3], [30]),
  cut('columns', [40, 24], [4], [20], [1]),
  cut('odd columns', [40, 25], [3], [20], [-1]),
  ...[1, 2, 3, 4, 5].map((start) => cut(`columns from ${start} on`, [9, 97], [start], [95], [1])),
  cut('odd columns of many rows', [300, 41], [1, 3], [299, 40], [0, 1]),
  cut('rows and columns from the end', [20, 64], [1, 1], [19, 63], [0, 1]),
  cut('steps', [41, 25], [1, 2], [40, 25], [0, 1], [3, 2]),
  cut('backwards', [9, 12, 8], [-1, -1, -1], [-1000, -1000, -1000], [0, 1, 2], [-1, -1, -1]),
  cut('rows backwards', [9, 16], [-1], [-1000], [0], [-2]),
  cut('backwards to a place', [20], [15], [4], [0], [-3]),
  cut('clamped', [7, 9], [-1000, 2], [3, 1000]),
  cut('step past the end', [7], [2], [7], [0], [1000]),
  cut('nothing', [7, 9], [4], [2]),
  cut('nothing backwards', [7, 9], [2], [4], [0], [-1]),
  cut('of no elements', [0, 9], [0, 1], [5, 4]),
  cut('no axes', [4, 5], [], []),
  cut('axes in any order', [6, 7, 8], [1, 2], [5, 7], [2, 0]),
  cut('columns of a view', [40, 24], [4], [20], [1], undefined, { offset: 1 }),
  cut('special numbers', [40, 33], [1, 1], [40, 33], [0, 1], [1, 2], { fill: 'specials', dtypes: undefined }),
];

const parts = (name, dims, options, extra = {}) => row('split', name, [dims], options, { fill: 'wholes', dtypes: sizes, ...extra });

const splits = [
  row('split', 'any type', [[6, 7]], { axis: 1, split: [3, 4] }, every),
  parts('equal parts', [12, 8], { numOutputs: 3 }),
  parts('equal parts of columns', [5, 48], { axis: -1, numOutputs: 3 }),
  parts('a smaller last part', [5, 7, 3], { axis: 1, numOutputs: 3 }),
  parts('sizes', [4, 20, 3], { axis: 1, split: [1, 4, 0, 15] }),
  parts('one part', [4, 5], { axis: 0, numOutputs: 1 }),
  parts('of no elements', [0, 5], { axis: 1, numOutputs: 5 }),
  parts('view', [6, 33], { axis: 1, split: [16, 17] }, { offset: 1 }),
];

const join = (name, shapes, axis, extra = {}) => row('concat', name, shapes, { axis }, { fill: 'wholes', dtypes: sizes, ...extra });

const joins = [
  row('concat', 'any type', [[2, 3], [2, 4]], { axis: 1 }, every),
  join('rows', [[3, 8], [1, 8], [5, 8]], 0),
  join('columns', [[6, 8], [6, 16], [6, 4]], 1),
  join('odd columns', [[6, 3], [6, 7], [6, 1]], -1),
  join('a middle axis', [[2, 3, 4], [2, 1, 4]], 1),
  join('one', [[4, 5]], 1),
  join('an empty one', [[4, 0], [4, 5], [4, 0]], 1),
  join('no elements', [[0, 3], [0, 2]], 1),
  join('odd wide ones', [[9, 37], [9, 50], [9, 1], [9, 0], [9, 70]], 1),
  join('odd rows', [[3, 5], [4, 5], [1, 5]], 0),
  join('more than one launch takes', Array.from({ length: 130 }, (_, index) => [2, index % 3]), 1),
  join('many', Array.from({ length: 40 }, (_, index) => [3, index % 4 + 1]), 1),
  join('views', [[6, 8], [6, 8]], 1, { offset: 1 }),
];

const spread = (name, dims, shape, extra = {}) => row('expand', name, [dims], { shape }, { fill: 'wholes', dtypes: sizes, ...extra });
const repeated = (name, dims, repeats, extra = {}) => row('tile', name, [dims], { repeats }, { fill: 'wholes', dtypes: sizes, ...extra });

const copies = [
  row('expand', 'any type', [[3, 1]], { shape: [2, 1, 4] }, every),
  spread('rows', [1, 40], [37, 40]),
  spread('columns', [37, 1], [37, 40]),
  spread('columns of few', [65, 1], [65, 3]),
  spread('more axes', [5], [3, 4, 5]),
  spread('a scalar', [], [7, 3]),
  spread('the middle', [2, 1, 33], [2, 35, 33]),
  spread('two apart', [1, 40, 1, 3], [36, 1, 34, 3]),
  spread('nothing to do', [4, 5], [1, 1]),
  spread('to no elements', [1, 3], [0, 3]),
  spread('of no elements', [0, 1], [1, 5]),
  spread('view', [1, 33], [6, 33], { offset: 1 }),
  row('tile', 'any type', [[3, 2]], { repeats: [2, 3] }, every),
  repeated('rows', [5, 8], [4, 1]),
  repeated('columns', [5, 7], [1, 6]),
  repeated('long columns', [40, 33], [1, 3]),
  repeated('every axis', [2, 3, 4], [3, 2, 5]),
  repeated('once', [4, 5], [1, 1]),
  repeated('never', [4, 5], [2, 0]),
  repeated('a scalar', [], []),
  repeated('view', [7, 9], [2, 2], { offset: 1 }),
];

const modes = ['constant', 'reflect', 'edge', 'wrap'];
const padded = (name, dims, options, extra = {}) => row('pad', name, [dims], options, { fill: 'wholes', dtypes: sizes, ...extra });

const pads = [
  row('pad', 'any type', [[3, 4]], { pads: [1, 0, 2, 3], value: 1 }, every),
  ...modes.flatMap((mode) => [
    padded(`${mode}, every axis`, [5, 7, 6], { pads: [1, 2, 3, 4, 0, 5], mode, value: 3 }),
    padded(`${mode}, the last axis`, [3, 9], { pads: [4, 3], axes: [-1], mode }),
    padded(`${mode}, whole vectors`, [6, 32], { pads: [16, 16], axes: [1], mode }),
    padded(`${mode}, outer axes`, [3, 5, 16], { pads: [1, 2, 2, 1], axes: [1, 0], mode }),
    padded(`${mode}, taken away`, [8, 9], { pads: [-2, 1, 1, -3], mode }),
    padded(`${mode}, wide rows`, [4, 75], { pads: [1, 37, 0, 30], mode, value: 3 }),
    padded(`${mode}, far wide rows`, [4, 20], { pads: [0, 19, 3, 18], mode, value: 3 }),
    padded(`${mode}, view`, [5, 33], { pads: [1, 2, 2, 1], mode }, { offset: 1 }),
    padded(`${mode}, nothing`, [5, 6], { pads: [0, 0, 0, 0], mode }),
  ]),
  padded('far around', [3, 2], { pads: [10, 7, 5, 9], mode: 'wrap' }),
  padded('far beyond', [3, 2], { pads: [10, 7, 5, 9], mode: 'edge' }),
  padded('of no elements', [0, 4], { pads: [1, 0, 2, 0], value: 5 }),
  padded('to no elements', [4, 4], { pads: [-2, 0, -2, 0] }),
  padded('a scalar', [], { pads: [] }),
  padded('NaN', [4, 5], { pads: [1, 1, 1, 1], value: NaN }, { dtypes: undefined }),
  padded('-Infinity', [4, 5], { pads: [1, 1, 1, 1], value: -Infinity }, { fill: 'specials', dtypes: undefined }),
];

/** Operands with indices of `type` from -length to length - 1. */
const indexed = (op, name, x, indices, axis, { type = 'int64', offset, dtypes = sizes } = {}) => {
  const length = x.at(axis);
  const list = Array.from({ length: 97 }, (_, index) => (index * 31 + 5) % Math.max(2 * length, 1) - length);
  const operands = [{ dims: x, fill: 'wholes', offset }, { dims: indices, fill: list, type, offset }];
  if (op === 'scatterElements') operands.push({ dims: indices, fill: 'wholes', offset });
  return { op, name, inputs: operands, options: { axis }, dtypes };
};

const gathers = [
  indexed('gather', 'any type', [5, 3], [4], 0, { dtypes: types }),
  ...['int64', 'int32'].flatMap((type) => [
    indexed('gather', `rows by ${type}`, [50, 32], [7, 3], 0, { type }),
    indexed('gather', `odd rows by ${type}`, [50, 33], [300], 0, { type }),
    indexed('gather', `columns by ${type}`, [6, 40], [70], 1, { type }),
  ]),
  indexed('gather', 'a middle axis', [4, 9, 6], [2, 5], -2),
  indexed('gather', 'one index', [5, 7], [], 0),
  indexed('gather', 'no indices', [5, 7], [0], 0),
  indexed('gather', 'from no elements', [5, 0], [3], 0),
  indexed('gather', 'view', [9, 16], [12], 0, { offset: 1 }),
  indexed('gatherElements', 'any type', [5, 3], [4, 3], 0, { dtypes: types }),
  ...['int64', 'int32'].flatMap((type) => [
    indexed('gatherElements', `along rows by ${type}`, [7, 40], [7, 65], 1, { type }),
    indexed('gatherElements', `along columns by ${type}`, [40, 33], [90, 30], 0, { type }),
  ]),
  indexed('gatherElements', 'the last axis of four', [3, 4, 5, 6], [2, 3, 4, 11], -1),
  indexed('gatherElements', 'no indices', [5, 7], [0, 7], 0),
  indexed('gatherElements', 'view', [9, 16], [5, 11], 0, { offset: 1 }),
];

/** Indices that never meet: each place along the axis once, in another order. */
const scattered = (name, x, indices, axis, extra = {}) => {
  const row = indexed('scatterElements', name, x, indices, axis, extra);
  const inner = indices.slice(axis + 1).reduce((a, b) => a * b, 1);
  const total = indices.reduce((a, b) => a * b, 1);
  const step = [7, 5, 3, 1].find((prime) => x[axis] % prime !== 0);
  const list = Array.from({ length: total }, (_, at) => {
    const index = Math.floor(at / inner) % indices[axis] * step % x[axis];
    return at % 2 === 0 ? index : index - x[axis];
  });
  row.inputs[1].fill = list;
  return row;
};

/** Updates that meet, in every type. */
const joined = (reduction, name, x, indices, axis, extra = {}) => {
  const total = indices.reduce((a, b) => a * b, 1);
  const fill = [1, 2, 0, 3, 1, 1];
  return {
    op: 'scatterElements', name: `${reduction}, ${name}`, options: { axis, reduction }, dtypes: types, oneForm: true,
    inputs: [
      { dims: x, fill, offset: extra.offset },
      { dims: indices, type: extra.type ?? 'int64', fill: Array.from({ length: total }, (_, at) => (at * 7 % (2 * x[axis])) - x[axis]) },
      { dims: indices, fill: [1, 3, 2, 1, 1, 0, 1], offset: extra.offset },
    ],
  };
};
const joinedUpdates = ['add', 'mul', 'max', 'min'].flatMap((reduction) => [
  joined(reduction, 'one axis', [5], [12], 0),
  joined(reduction, 'rows', [3, 9], [3, 20], 1, { type: 'int32' }),
  joined(reduction, 'columns', [9, 5], [6, 3], 0),
  joined(reduction, 'a middle axis, view', [2, 5, 6], [2, 3, 4], 1, { offset: 1 }),
  joined(reduction, 'no updates', [4, 3], [0, 3], 0),
]).concat(['max', 'add'].map((reduction) => ({
  op: 'scatterElements', name: `${reduction} of numbers that are not finite`, options: { reduction },
  inputs: [{ dims: [4], fill: [NaN, Infinity, 1, 2] }, { dims: [5], type: 'int64', fill: [0, 1, 2, 2, 3] }, { dims: [5], fill: [1, -Infinity, NaN, 1, Infinity] }],
})));

const scatters = [
  scattered('any type', [5, 3], [4, 3], 0, { dtypes: types }),
  ...['int64', 'int32'].flatMap((type) => [
    scattered(`along rows by ${type}`, [7, 64], [7, 40], 1, { type }),
    scattered(`along columns by ${type}`, [95, 33], [90, 30], 0, { type }),
  ]),
  scattered('no indices', [5, 7], [0, 7], 0),
  scattered('view', [9, 16], [5, 11], 0, { offset: 1 }),
];

export const cases = [...transposes, ...slices, ...splits, ...joins, ...copies, ...pads, ...gathers, ...scatters, ...joinedUpdates];
export const levels = Object.fromEntries(['transpose', 'slice', 'split', 'concat', 'expand', 'tile', 'pad', 'gather', 'gatherElements', 'scatterElements'].map((op) => [op, 'exact']));
