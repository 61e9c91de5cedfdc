// The smallest calls that between them launch every kernel of the registry. Which tile a product takes depends on the
// number of multiprocessors: on a card with one, large tiles pay at small sizes.
import { types } from './cast.mjs';
import { convolutions, shared } from './conv-tensor-cores.mjs';
import { halves as halfConvolutions } from './conv-halves.mjs';
import { binaryOps, unaryOps } from './elementwise.mjs';
import { kernels as attention } from './attention.mjs';
import { kernels as quantize } from './quantize.mjs';
import { layer } from './recurrent.mjs';
import { cases } from './tensor-cores.mjs';

const row = (op, name, shapes, options = {}, extra = {}) => ({
  op, name, inputs: shapes.map((dims) => ({ dims, fill: extra.fill })), options, named: extra.named, dtypes: extra.dtypes, forms: ['arrays'],
});

const elementwise = [
  ...unaryOps.map((op) => row(op, 'plain', [[300]], {}, { fill: 'positive' })),
  row('gelu', 'tanh', [[300]], { approximate: 'tanh' }),
  ...binaryOps.map((op) => row(op, 'equal dims', [[300], [300]], {}, { fill: 'positive' })),
];

const floats = types.slice(0, 4);
const cast = [
  ...floats.map((to) => row('cast', `floats to ${to}`, [[300]], { to }, { dtypes: floats })),
  row('cast', 'to int16', [[300]], { to: 'int16' }, { fill: 'wholes', dtypes: types }),
];

const chosen = (op, name, shapes) => {
  const made = row(op, name, shapes, { axis: 0 }, { fill: 'wholes', dtypes: sized });
  made.inputs[1] = { dims: shapes[1], fill: [2, 0, -2], type: 'int32' };
  return made;
};

/** One type of each size: units of it and of 16 bytes, tiles. */
const sized = ['uint8', 'float16', 'float32', 'float64'];
const layout = [
  row('slice', 'every other column', [[5, 7]], { starts: [1], ends: [6], axes: [1], steps: [2] }, { fill: 'wholes', dtypes: sized }),
  row('slice', 'odd columns', [[5, 40]], { starts: [1], ends: [38], axes: [1] }, { fill: 'wholes', dtypes: sized }),
  row('concat', 'odd columns', [[5, 20], [5, 17]], { axis: 1 }, { fill: 'wholes', dtypes: sized }),
  row('slice', 'rows of 16 bytes', [[5, 16]], { starts: [1], ends: [4] }, { fill: 'wholes', dtypes: sized }),
  row('pad', 'odd columns', [[5, 7]], { pads: [1, 2], axes: [1] }, { fill: 'wholes', dtypes: sized }),
  chosen('gather', 'odd rows', [[5, 7], [3]]),
  chosen('gather', 'rows of 16 bytes', [[5, 16], [3]]),
  chosen('gatherElements', 'columns', [[5, 7], [3, 1]]),
  chosen('scatterElements', 'columns', [[5, 7], [3, 1], [3, 1]]),
  ...[2, 3, 4].flatMap((channels) => [
    row('transpose', `${channels} channels apart`, [[channels, 528]], {}, { fill: 'wholes', dtypes: sized }),
    row('transpose', `${channels} channels together`, [[528, channels]], {}, { fill: 'wholes', dtypes: sized }),
  ]),
  row('transpose', 'whole runs', [[40, 48]], {}, { fill: 'wholes', dtypes: sized }),
  row('transpose', 'ragged', [[33, 65]], {}, { fill: 'wholes', dtypes: sized }),
];

const resizes = [[[5, 7], [9, 4]], [[5, 7], [5, 9]], [[4, 5, 6], [7, 3, 9]]].map(([dims, sizes]) => row('resize', `[${dims}] to [${sizes}]`, [dims], { sizes, mode: 'linear' }));

const pool = [
  ...['maxPool2d', 'averagePool2d'].map((op) => row(op, 'plain', [[2, 3, 8, 9]], { kernel: [3, 2], strides: [2, 2], pads: [1, 0, 1, 1] })),
  ...['globalMaxPool', 'globalAveragePool'].flatMap((op) => [[2, 3, 7, 7], [1, 2, 33, 31], [1, 2, 64, 65]].map((dims) => row(op, `[${dims}]`, [dims]))),
];

/** Row lengths that between them take each form in each type. */
const lengths = [16, 28, 60, 100, 200, 300, 4000, 8000, 16000, 16400];

const rows = [
  ...['softmax', 'logSoftmax'].flatMap((op) => [
    ...lengths.map((n) => row(op, `rows of ${n}`, [[2, n]], { axis: 1 })),
    row(op, 'columns', [[2, 17, 6]], { axis: 1 }),
  ]),
  ...lengths.map((n) => row('layerNorm', `rows of ${n}`, [[2, n]], { axis: 1 }, { named: { scale: { dims: [n] }, bias: { dims: [n] } } })),
  ...lengths.map((n) => row('rmsNorm', `rows of ${n}`, [[2, n]], { axis: 1 }, { named: { scale: { dims: [n] } } })),
  ...lengths.map((n) => row('groupNorm', `rows of ${n}`, [[1, 8, n / 4]], { numGroups: 2 }, { named: { scale: { dims: [8] }, bias: { dims: [8] } } })),
  row('batchNorm', 'plain', [[2, 3, 4, 5], [3], [3], [3], [3]], {}, { fill: 'positive' }),
];

const median = [
  row('median', 'drop', [[9, 16]], { nan: 'drop' }),
  row('median', 'held', [[100, 40]]),
  row('median', 'tile of float64', [[300, 33]]),
  row('median', 'tile of float32', [[600, 33]], {}, { dtypes: ['float32'] }),
  row('median', 'stream', [[1300, 5]]),
];

/** Rows long, ragged and short, columns four and eight at a time, columns one by one. */
const reductions = ['reduceSum', 'reduceL1', 'reduceSumSquare', 'reduceProd', 'reduceMax', 'reduceMin'].flatMap((op) =>
  [[[2, 600], 1], [[3, 301], 1], [[70, 16], 1], [[40, 8], 0], [[9, 5], 0]].map(([dims, axis]) => row(op, `[${dims}]`, [dims], { axes: [axis] }, { fill: [1, -1, 0.5, 2] })));

const args = ['argMax', 'argMin'].flatMap((op) => [
  row(op, 'rows', [[3, 40]], { axis: 1 }),
  row(op, 'vectors of columns in parts', [[300, 16]], { axis: 0 }),
  row(op, 'columns', [[40, 5]], { axis: 0 }),
]);

const whole = (op, options, dtypes = ['int32']) => row(op, 'whole numbers', [[3, 9]], options, { fill: [1, 2, 3], dtypes });
const counted = [
  ...['reduceSum', 'reduceL1', 'reduceSumSquare', 'reduceProd', 'reduceMax', 'reduceMin'].map((op) => whole(op, { axes: [1] })),
  whole('argMax', { axis: 1 }),
  row('reduceLogSumExp', 'rows', [[3, 40]], { axes: [1] }),
  ...['cumSum', 'cumProd'].flatMap((op) => [0, 1].map((axis) => row(op, `axis ${axis}`, [[3, 40]], { axis }, { fill: [1, 1, 2, 1], dtypes: [...floats, 'uint32', 'uint64'] }))),
  {
    ...chosen('scatterElements', 'joined', [[5, 7], [3, 1], [3, 1]]), options: { axis: 0, reduction: 'add' }, dtypes: types,
    // Sums that no type wraps.
    inputs: [{ dims: [5, 7], fill: [1, 2, 0, 3, 1, 1] }, { dims: [3, 1], fill: [2, 0, -2], type: 'int32' }, { dims: [3, 1], fill: [1, 3, 2] }],
  },
  row('maxPool2dWithIndices', 'plain', [[1, 2, 5, 6]], { kernel: [2, 2] }, { fill: 'ties', dtypes: [...floats, 'int8', 'uint8'] }),
  row('gridSample', 'plain', [[1, 2, 4, 4], [1, 3, 3, 2]]),
  row('topK', 'sorted', [[3, 40]], { k: 5 }),
  row('topK', 'picked', [[3, 1100]], { k: 5 }),
];

/** Products with few rows, whose large operand lies along the sums or across: short sums, which stay chains, and long ones. */
const skinny = [1, 3, 8].flatMap((m) => [60, 130].flatMap((k) => [true, false].map((transB) =>
  row('matmul', `${m} rows, sums of ${k}${transB ? ', transB' : ''}`, [[m, k], transB ? [70, k] : [k, 70]], { transB }))))
  .concat(row('matmul', 'few outputs, long sums', [[2, 2100], [2100, 40]], { activation: 'relu' }, { named: { bias: { dims: [40] } } }))
  .concat(row('matmul', 'few outputs, long sums, rows side by side', [[2100, 20], [2100, 40]], { transA: true }));

/** Small float32 products for the matrix units: how many of each operand's rows a block owns, and how they lie. */
const direct = (sizes) => sizes.flatMap(([m, n, k]) => [
  row('matmul', `direct ${m} x ${k} x ${n}`, [[m, k], [k, n]], { activation: 'relu' }, { dtypes: ['float32'], named: { bias: { dims: [n] } } }),
  row('matmul', `direct ${m} x ${k} x ${n}, transB`, [[m, k], [n, k]], { transB: true, activation: 'tanh' }, { dtypes: ['float32'] }),
  row('matmul', `direct ${n} x ${k} x ${m}`, [[n, k], [k, m]], { beta: 0.5 }, { dtypes: ['float32'], named: { c: { dims: [n, m] } } }),
]);

/** From compute capability 8.0 on, with several multiprocessors. */
export const directOnSeveral = [
  ...direct([[7, 40, 100], [17, 100, 388], [9, 130, 102], [33, 65, 100], [9, 260, 100]]),
  row('matmul', 'row by a matrix', [[1, 1500], [40, 1500]], { transB: true }, { dtypes: ['float32'] }),
  row('matmul', 'matrix by a column', [[40, 1502], [1502, 1]], { beta: 2 }, { dtypes: ['float32'], named: { c: { dims: [40, 1] }, bias: { dims: [40, 1] } } }),
  row('matmul', 'row by a matrix, split sums', [[1, 4100], [41, 4100]], { transB: true }, { dtypes: ['float32'] }),
  row('matmul', 'direct 12 x 1030 x 40, split sums', [[12, 1030], [1030, 40]], { activation: 'silu' }, { dtypes: ['float32'] }),
];

/** The same with one. */
export const directOnOne = [
  ...direct([[3, 17, 1500], [13, 30, 4096]]),
  row('matmul', 'many rows', [[135, 64], [64, 60]], { alpha: 2 }, { dtypes: ['float32'] }),
  row('matmul', 'many rows, all of the end', [[135, 68], [60, 68]], { transB: true, beta: 0.5, activation: 'gelu' }, { dtypes: ['float32'], named: { c: { dims: [135, 1] }, bias: { dims: [60] } } }),
];

const pads = [1, 1, 1, 1];
const conv = (name, x, w, options = { pads }) => row('conv2d', name, [x, w], options, { named: { bias: { dims: [w[0]] } } });
const transposed = (name, x, w) => row('convTranspose2d', name, [x, w], { pads }, { named: { bias: { dims: [w[1]] } } });

const windows = [
  ...[3, 5].flatMap((k) => [1, 2].map((stride) =>
    [[11, 10], [19, 16], [9, 12], [9, 24]].map((size) => conv(`depthwise ${k}x${k} stride ${stride}, ${size}`, [1, 5, ...size], [5, 1, k, k], { group: 5, strides: [stride, stride], pads: [1, 1, 1, 1].map(() => k >> 1) })))).flat(),
  conv('direct', [2, 3, 5, 6], [4, 3, 3, 3]),
  conv('few outputs, long sums', [1, 128, 5, 6], [33, 128, 3, 3]),
  transposed('direct', [1, 2, 5, 6], [2, 3, 3, 3]),
  transposed('few outputs, long sums', [1, 128, 6, 6], [128, 33, 3, 3]),
];

const recurrent = [
  ...['lstm', 'gru', 'rnn'].map((op) => layer(op, 'kernels', [2, 2, 3, 4], {}, { with: ['bias'] })),
  layer('gru', 'kernels, linearBeforeReset', [2, 2, 3, 4], { linearBeforeReset: true }, { with: ['bias'] }),
];

/** On a card with several multiprocessors. */
export const several = [...attention, ...quantize, ...recurrent, ...elementwise, ...cast, ...layout, ...resizes, ...pool, ...rows, ...reductions, ...args, ...counted, ...median, ...skinny, ...windows];

/** Products of halves by each tile and transpose of compute capability 9.0, and sums that leave its tensor cores. */
const halves = ['float16', 'bfloat16'];
const tiles = [64, 128, 192, 256].flatMap((n) => [[false, false], [false, true], [true, false], [true, true]].map(([transA, transB]) =>
  row('matmul', `halves 128 x 72 x ${n}${transA ? ', transA' : ''}${transB ? ', transB' : ''}`, [transA ? [72, 128] : [128, 72], transB ? [n, 72] : [72, n]], { transA, transB }, { dtypes: halves })))
  .concat(row('matmul', 'halves at odd places', [[67, 73], [73, 61]], {}, { dtypes: halves }))
  .concat(row('matmul', 'halves to float32', [[67, 72], [72, 64]], { outputType: 'float32' }, { dtypes: halves }));

/** On a card with one; edges of the tiles are off the sizes. */
export const single = [
  ...tiles,
  ...[[127, 255], [128, 191], [63, 62], [31, 29]].map(([m, n]) =>
    row('matmul', `${m} x 33 x ${n}`, [[m, 33], [33, n]], { activation: 'relu' }, { named: { bias: { dims: [n] } } })),
  ...[16, 3].flatMap((channels) => [[63, 16, 24], [63, 8, 8], [31, 15, 34], [31, 4, 7]].map(([filters, height, width]) =>
    conv(`${channels} channels, ${filters} filters, ${height} x ${width}`, [1, channels, height, width], [filters, channels, 3, 3]))),
  ...[[63, 8, 8], [31, 4, 7]].map(([filters, height, width]) =>
    transposed(`${filters} filters, ${height} x ${width}`, [1, 16, height, width], [16, filters, 3, 3])),
];

/** On a card of compute capability 9.0 with one multiprocessor, and on the others. */
export const sharedTiles = shared;
export const tensorCores = [...cases, ...convolutions, ...halfConvolutions];
