import { edges } from './sizes.mjs';

const ops = ['reduceSum', 'reduceMean', 'reduceMax', 'reduceMin', 'reduceProd', 'reduceL1', 'reduceL2', 'reduceSumSquare', 'reduceLogSum', 'reduceLogSumExp'];
const ordered = (op) => op === 'reduceMax' || op === 'reduceMin';

/** Numbers whose products stay in range and whose sums have a logarithm. */
const plain = { reduceProd: [1, -1, 0.5, 2, 1.25, 0.8], reduceLogSum: 'positive' };

const rowsOf = (op) => {
  const usual = plain[op] ?? 'normal';
  const row = (name, dims, options = {}, fill = usual, offset = 0) => ({ op, name, inputs: [{ dims, fill, offset }], options });
  return [
    ...[...edges.slice(1), 1000, 2049, 8192].flatMap((n) => [
      row(`rows of ${n}`, [5, n], { axes: [1] }),
      row(`columns of ${n}`, [n, 5], { axes: [0] }),
      row(`columns of ${n}, four at a time`, [2, n, 8], { axes: [1] }),
    ]),
    row('all', [3, 41, 7]),
    row('all without dims', [3, 41, 7], { keepDims: false }),
    row('one long row', [70_001], { axes: [0] }),
    row('few long columns', [30_011, 3], { axes: [0] }),
    row('many columns', [65, 4096], { axes: [0] }),
    row('many ragged columns', [65, 1025], { axes: [0] }),
    row('more rows than a grid has in y', [65_537, 3], { axes: [1] }),
    row('two axes apart', [4, 6, 5, 7], { axes: [0, 2] }),
    row('two axes apart, negative', [4, 6, 5, 7], { axes: [-1, 1], keepDims: false }),
    row('three apart', [3, 2, 5, 2, 7], { axes: [0, 2, 4] }),
    row('neighbours', [4, 6, 5, 7], { axes: [1, 2] }),
    row('axes of one element', [4, 1, 5], { axes: [1] }),
    row('an empty list', [4, 5], { axes: [] }),
    row('a scalar', []),
    row('no rows', [0, 5], { axes: [1] }),
    row('view', [6, 41], { axes: [1] }, usual, 1),
    row('view of columns', [41, 8], { axes: [0] }, usual, 1),
    row('numbers that are not finite', [40, 33], { axes: [1] }, ordered(op) ? 'nonFinite' : { fill: usual, at: { 40: NaN, 90: Infinity, 200: Infinity, 201: Infinity } }),
    row('NaN among columns', [33, 40], { axes: [0] }, { fill: usual, at: { 7: NaN, 400: NaN } }),
    ...(ordered(op) ? [
      row('infinities alone', [4, 5], { axes: [1] }, op === 'reduceMax' ? -Infinity : Infinity),
      row('zeros of both signs', [4, 6], { axes: [1] }, [0, -0]),
      row('no elements, the identity', [3, 0], { axes: [1], empty: 'identity' }),
    ] : [row('no elements', [3, 0], { axes: [1] }), row('no elements at all', [0, 0], {})]),
  ];
};

const summed = ['int64', 'int32', 'uint64', 'uint32'];
const wholeTypes = { reduceMax: ['int64', 'int32', 'int8', 'uint64', 'uint32', 'uint8', 'bool'], reduceMin: ['int64', 'int32', 'int8', 'uint64', 'uint32', 'uint8', 'bool'] };

const wholeRowsOf = (op) => {
  const signed = (dtype) => dtype.startsWith('int');
  const own = wholeTypes[op] ?? summed;
  return [true, false].flatMap((sign) => wholeRows(op, sign ? 'numbers with a sign' : 'numbers without', own.filter((dtype) => signed(dtype) === sign), op === 'reduceProd' ? [1, 2, 1, 1, 3, 1, 1] : sign ? small : positive));
};

/** Numbers whose squares float64 holds exactly. */
const positive = [3, 1, 0, 7, 5, 2, 9, 4, 100, 6, 11];
const small = [3, -1, 0, -7, 5, 2, -9, 4, -100, 6, -11];

const wholeRows = (op, words, dtypes, fill) => {
  const row = (name, dims, options = {}, offset = 0) => ({ op, name: `${words}, ${name}`, inputs: [{ dims, fill, offset }], options, dtypes });
  return [
    ...[1, 3, 33, 40].flatMap((n) => [row(`rows of ${n}`, [5, n], { axes: [1] }), row(`columns of ${n}`, [n, 5], { axes: [0] })]),
    row('all', [3, 4, 3], { keepDims: false }),
    row('two axes apart', [4, 6, 3, 2], { axes: [0, 2] }),
    row('a scalar', []),
    row('no rows', [0, 5], { axes: [1] }),
    row('view', [3, 11], { axes: [1] }, 1),
    ...(ordered(op) ? [] : [row('no elements', [3, 0], { axes: [1] })]),
  ];
};

const infinite = { op: 'reduceLogSumExp', name: 'infinities alone', inputs: [{ dims: [4, 5], fill: -Infinity }], options: { axes: [1] } };
const far = { op: 'reduceLogSumExp', name: 'numbers without exponentials', inputs: [{ dims: [4, 50], fill: [1000, 999, 1001, -1000] }], options: { axes: [1] } };

const argOps = ['argMax', 'argMin'];

const argRowsOf = (op) => {
  const row = (name, dims, options = {}, fill = 'normal', offset = 0) => ({ op, name, inputs: [{ dims, fill, offset }], options });
  return [
    ...[...edges.slice(1), 1000, 2049].flatMap((n) => [
      row(`rows of ${n}`, [5, n], { axis: 1 }),
      row(`columns of ${n}`, [n, 5], { axis: 0 }),
      row(`ties in columns of ${n}`, [2, n, 8], { axis: 1 }, 'ties'),
    ]),
    ...[false, true].flatMap((selectLastIndex) => [
      row(`ties, ${selectLastIndex ? 'last' : 'first'}`, [40, 70], { axis: 1, selectLastIndex }, 'ties'),
      row(`ties of columns, ${selectLastIndex ? 'last' : 'first'}`, [70, 40], { axis: 0, selectLastIndex }, 'ties'),
      row(`numbers that are not finite, ${selectLastIndex ? 'last' : 'first'}`, [60, 9], { axis: 1, selectLastIndex }, 'nonFinite'),
      row(`none finite, ${selectLastIndex ? 'last' : 'first'}`, [30, 70], { axis: 0, selectLastIndex }, 'all'),
    ]),
    ...[false, true].flatMap((selectLastIndex) => [
      row(`ties in a long row, ${selectLastIndex ? 'last' : 'first'}`, [2, 70_000], { axis: 1, selectLastIndex }, 'ties'),
      row(`infinities in a long row, ${selectLastIndex ? 'last' : 'first'}`, [40_001], { axis: 0, selectLastIndex }, op === 'argMax' ? -Infinity : Infinity),
      row(`infinities in columns, ${selectLastIndex ? 'last' : 'first'}`, [300, 8], { axis: 0, selectLastIndex }, op === 'argMax' ? -Infinity : Infinity),
    ]),
    row('NaN at the end of a long row', [70_000], { axis: 0 }, { fill: 'normal', at: { 69_999: NaN } }),
    row('without dims', [4, 6, 5], { axis: -2, keepDims: false }),
    row('axis by default', [6, 5]),
    row('one long row', [70_001], { axis: 0 }),
    row('many columns', [65, 4096], { axis: 0 }),
    row('more rows than a grid has in y', [65_537, 3], { axis: 1 }),
    row('a scalar', []),
    row('no rows', [0, 5], { axis: 1 }),
    row('view', [6, 41], { axis: 1 }, 'normal', 1),
    row('infinities alone', [4, 5], { axis: 1 }, op === 'argMax' ? -Infinity : Infinity),
    row('zeros of both signs', [4, 6], { axis: 1 }, [0, -0]),
  ];
};

const argWholeRowsOf = (op) => [[5, 1], [5, 40], [40, 5], [2, 33, 3]].flatMap((dims) => [true, false].flatMap((sign) => [false, true].map((selectLastIndex) => ({
  op, name: `numbers ${sign ? 'with' : 'without'} a sign, [${dims}]${selectLastIndex ? ', last' : ''}`, inputs: [{ dims, fill: sign ? 'wholes' : positive }],
  options: { axis: dims.length > 2 ? 1 : -1, selectLastIndex },
  dtypes: sign ? ['int64', 'int32', 'int16', 'int8'] : ['uint64', 'uint32', 'uint16', 'uint8'],
}))));

export const cases = [
  ...ops.flatMap(rowsOf), infinite, far, ...ops.slice(0, 8).flatMap(wholeRowsOf), ...argOps.flatMap(argRowsOf), ...argOps.flatMap(argWholeRowsOf),
];
export const levels = {
  ...Object.fromEntries(ops.map((op) => [op, ordered(op) ? 'exact' : 'accumulate'])),
  ...Object.fromEntries(argOps.map((op) => [op, 'exact'])),
};
