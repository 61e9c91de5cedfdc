import { edges } from './sizes.mjs';

const row = (op, name, dims, options = {}, fill = 'normal', offset = 0) => ({ op, name, inputs: [{ dims, fill, offset }], options });

const soft = ['softmax', 'logSoftmax'].flatMap((op) => [
  ...[...edges, 1000, 1024, 1025, 4097].flatMap((n) => [row(op, `rows of ${n}`, [5, n], { axis: 1 }), row(op, `one row of ${n}`, [n], { axis: 0 })]),
  ...[0, 1, 2, -1, -2, -3].map((axis) => row(op, `axis ${axis}`, [7, 33, 5], { axis })),
  row(op, 'axis by default', [4, 9]),
  row(op, 'more rows than a grid has in y', [65537, 3], { axis: 1 }),
  row(op, 'axis 1 of four', [2, 17, 6, 7], { axis: 1 }),
  row(op, 'no rows', [0, 5], { axis: 1 }),
  row(op, 'axis before an empty one', [3, 4, 0], { axis: 1 }),
  row(op, 'far from zero', [6, 40], { axis: 1 }, { fill: 'normal', shift: 1000 }),
  row(op, 'spread', [6, 40], { axis: 1 }, { fill: 'normal', scale: 30 }),
  row(op, 'equal', [3, 17], { axis: 1 }, 2.5),
  row(op, 'view', [6, 41], { axis: 1 }, 'normal', 1),
  row(op, 'the largest numbers', [1, 3], { axis: 1 }, [3.4e38, 3.4e38, 0]),
  row(op, 'all -Infinity', [2, 4], { axis: 1 }, -Infinity),
  row(op, 'a masked part', [2, 6], { axis: 1 }, [1, -Infinity, 2, -Infinity, 0.5, -Infinity]),
  row(op, 'an infinity', [2, 4], { axis: 1 }, [1, Infinity, 2, 3]),
  row(op, 'one NaN', [3, 100], { axis: 1 }, { fill: 'normal', at: { 130: NaN } }),
]);

const layer = (name, dims, options, shape, fill = 'normal', offset = 0) => ({
  op: 'layerNorm', name, inputs: [{ dims, fill, offset }], options,
  named: shape ? { scale: { dims: shape, fill: 'uniform', offset }, bias: { dims: shape, offset } } : undefined,
});

const layers = [
  ...[...edges.slice(1), 384, 1000, 1024, 1025, 4097].flatMap((n) => [layer(`rows of ${n}`, [3, n], { axis: 1 }, [n]), layer(`rows of ${n}, plain`, [2, n], { axis: -1 })]),
  layer('two axes', [3, 4, 5, 6], { axis: 2 }, [5, 6]),
  layer('all axes', [4, 5, 6], { axis: 0 }, [4, 5, 6]),
  layer('axis by default', [7, 12], {}, [12]),
  layer('more rows than a grid has in y', [65537, 2], { axis: 1 }, [2]),
  layer('epsilon', [5, 16], { axis: 1, epsilon: 0.25 }, [16]),
  layer('epsilon 1e-12', [5, 384], { axis: 1, epsilon: 1e-12 }, [384]),
  layer('no rows', [0, 8], { axis: 1 }, [8]),
  layer('equal numbers', [2, 33], { axis: 1 }, [33], 4),
  layer('a mean far from zero', [3, 256], { axis: 1 }, [256], { fill: 'normal', shift: 10000 }),
  layer('large numbers', [3, 256], { axis: 1 }, [256], { fill: 'normal', scale: 1e15 }),
  layer('view', [5, 37], { axis: 1 }, [37], 'normal', 3),
  layer('one NaN', [3, 40], { axis: 1 }, [40], { fill: 'normal', at: { 50: NaN } }),
  layer('an infinity', [3, 40], { axis: 1 }, [40], { fill: 'normal', at: { 50: Infinity } }),
  { ...layer('scale alone', [4, 9], { axis: 1 }), named: { scale: { dims: [9] } } },
  { ...layer('bias alone', [4, 9], { axis: 1 }), named: { bias: { dims: [9] } } },
];

const rms = (name, dims, options, shape, fill = 'normal', offset = 0) => ({
  ...layer(name, dims, options, shape, fill, offset), op: 'rmsNorm', named: shape ? { scale: { dims: shape, fill: 'uniform', offset } } : undefined,
});

const roots = [
  ...[...edges.slice(1), 384, 1000, 1024, 1025, 4097, 8200, 16400].flatMap((n) => [rms(`rows of ${n}`, [3, n], { axis: 1 }, [n]), rms(`rows of ${n}, plain`, [2, n], {})]),
  rms('two axes', [3, 4, 5, 6], { axis: 2 }, [5, 6]),
  rms('all axes', [4, 5, 6], { axis: 0 }, [4, 5, 6]),
  rms('more rows than a grid has in y', [65537, 2], { axis: 1 }, [2]),
  rms('epsilon', [5, 16], { axis: 1, epsilon: 0.25 }, [16]),
  rms('no rows', [0, 8], { axis: 1 }, [8]),
  rms('zeros', [2, 33], { axis: 1 }, [33], 0),
  rms('large numbers', [3, 256], { axis: 1 }, [256], { fill: 'normal', scale: 1e15 }),
  rms('view', [5, 37], { axis: 1 }, [37], 'normal', 3),
  rms('one NaN', [3, 40], { axis: 1 }, [40], { fill: 'normal', at: { 50: NaN } }),
  rms('an infinity', [3, 40], { axis: 1 }, [40], { fill: 'normal', at: { 50: Infinity } }),
];

const group = (dims, numGroups, extra = {}) => {
  const channel = { dims: [dims[1]], fill: 'uniform', offset: extra.offset };
  return {
    op: 'groupNorm', name: `[${dims}] in ${numGroups} ${JSON.stringify(extra)}`, options: { numGroups, ...extra.options },
    inputs: [{ dims, fill: extra.fill ?? 'normal', offset: extra.offset }], named: extra.plain ? undefined : { scale: channel, bias: channel },
  };
};

const groups = [
  // Groups of each form of row, whole vectors and ragged ones, channels that end inside a vector.
  ...[[[2, 4, 3], 2], [[2, 6, 5], 3], [[3, 8, 4, 4], 2], [[2, 8, 7, 7], 4], [[1, 16, 16, 16], 4], [[2, 6, 33, 31], 2], [[1, 4, 64, 65], 2], [[1, 4, 101, 97], 1], [[1, 2, 131, 127], 1]].map(([dims, count]) => group(dims, count)),
  group([5, 12], 3),
  group([2, 8, 5], 8),
  group([2, 8, 5], 1),
  group([2, 8, 5], 2, { plain: true }),
  group([2, 8, 5], 2, { options: { epsilon: 0.5 } }),
  group([2, 6, 37], 2, { offset: 1 }),
  group([0, 4, 5], 2),
  group([2, 4, 0], 2),
  group([2, 4, 9], 2, { fill: { fill: 'normal', at: { 5: NaN, 40: Infinity } } }),
  group([2, 4, 64], 2, { fill: { fill: 'normal', shift: 10000 } }),
];

const batch = (dims, options = {}, fill = 'normal', variance = 'positive', offset = 0) => {
  const channel = [dims[1]];
  return {
    op: 'batchNorm', name: `[${dims}] ${JSON.stringify(options)} of ${JSON.stringify(fill)}`, options,
    inputs: [{ dims, fill, offset }, { dims: channel, offset }, { dims: channel, offset }, { dims: channel }, { dims: channel, fill: variance }],
  };
};

const batches = [
  ...[[2, 3, 4, 5], [1, 1, 1, 1], [3, 65, 7, 7], [2, 129, 1, 3], [4, 5], [2, 17, 33], [1, 2, 3, 4, 5], [0, 3, 4, 4], [2, 3, 0, 4], [1, 3, 65, 63]].map((dims) => batch(dims)),
  batch([2, 3, 4, 5], { epsilon: 0.5 }),
  batch([2, 3, 8, 8], {}, 'nonFinite'),
  batch([2, 3, 8, 8], {}, 'normal', 0),
  batch([2, 5, 7, 3], {}, 'normal', 'positive', 1),
];

export const cases = [...soft, ...layers, ...roots, ...groups, ...batches];
