import { edges } from './sizes.mjs';

const product = (m, k, n, extra = {}) => ({
  op: 'matmul',
  name: `${m} x ${k} x ${n}${extra.label ? ` ${extra.label}` : ''}`,
  inputs: [{ dims: extra.options?.transA ? [k, m] : [m, k], fill: extra.fill }, { dims: extra.options?.transB ? [n, k] : [k, n], fill: extra.fill }],
  options: extra.options ?? {},
  named: extra.named,
  dtypes: extra.dtypes,
});

const transposes = [{ transA: true }, { transB: true }, { transA: true, transB: true }];

/** One dimension at a time, the others fixed off the tile sizes. */
const sweep = edges.flatMap((s) => [product(s, 17, 34), product(19, s, 21), product(33, 17, s)]);

const squares = [0, 1, 16, 31, 32, 64, 65, 127, 128, 129].map((s) => product(s, s, s));

const large = [product(257, 129, 255), product(129, 1000, 130, { dtypes: ['float32'] }), product(1, 2048, 3), product(3, 2049, 1)];

const turned = [[1, 1, 1], [5, 7, 3], [33, 65, 31], [64, 64, 64], [128, 17, 129], [1, 300, 64], [64, 300, 1]].flatMap(([m, k, n]) =>
  transposes.map((options) => product(m, k, n, { options, label: Object.keys(options).join(' ') })));

const fills = ['positive', 'wide', 'integers', 'zeros', 'moderate'].map((fill) =>
  product(17, 40, 19, { fill: fill === 'wide' ? { fill: 'normal', scale: 1e12 } : fill, label: `of ${fill}` }));

const full = (m, n, fill) => ({ dims: [m, n], fill });

const extended = [
  product(9, 11, 13, { label: 'alpha', options: { alpha: -0.75 } }),
  product(9, 11, 13, { label: 'alpha 0 never reads A or B', options: { alpha: 0 }, fill: 'all', named: { c: full(9, 13) } }),
  product(9, 11, 13, { label: 'c', named: { c: full(9, 13) } }),
  product(9, 11, 13, { label: 'beta', options: { beta: 0.5 }, named: { c: full(9, 13) } }),
  product(9, 11, 13, { label: 'beta 0 never reads c', options: { beta: 0 }, named: { c: full(9, 13, 'all') } }),
  product(9, 0, 13, { label: 'beta c alone', options: { beta: -2 }, named: { c: full(9, 13) } }),
  product(9, 0, 13, { label: 'bias and activation alone', options: { activation: 'relu' }, named: { bias: { dims: [13] } } }),
  product(33, 17, 65, { label: 'bias', named: { bias: { dims: [65] } } }),
  product(64, 64, 64, { label: 'all of it', options: { alpha: 1.5, beta: -0.5, activation: 'relu', transB: true }, named: { c: full(64, 64), bias: { dims: [64] } } }),
  ...['relu', 'sigmoid', 'tanh', 'gelu', 'silu', 'elu', 'selu', 'geluTanh', 'hardSigmoid', 'hardSwish', 'softplus', 'mish'].map((activation) =>
    product(17, 9, 33, { label: activation, options: { activation }, named: { bias: { dims: [33] } } })),
  product(17, 9, 33, { label: 'leakyRelu', options: { activation: 'leakyRelu' } }),
  product(17, 9, 33, { label: 'leakyRelu 0.25', options: { activation: 'leakyRelu', activationAlpha: 0.25 } }),
  product(17, 9, 33, { label: 'clip', options: { activation: 'clip', activationAlpha: 0, activationBeta: 2.5 } }),
  product(17, 9, 33, { label: 'clip above', options: { activation: 'clip', activationBeta: 0.5 } }),
  product(17, 9, 33, { label: 'elu 0.25', options: { activation: 'elu', activationAlpha: 0.25 } }),
  product(17, 9, 33, { label: 'selu 1.5 2', options: { activation: 'selu', activationAlpha: 1.5, activationBeta: 2 } }),
  product(17, 9, 33, { label: 'hardSigmoid 0.5 0.25', options: { activation: 'hardSigmoid', activationAlpha: 0.5, activationBeta: 0.25 } }),
  product(33, 17, 65, { label: 'bias by rows', named: { bias: { dims: [33, 1] } } }),
  product(33, 17, 65, { label: 'bias of a row', named: { bias: { dims: [1, 65] } } }),
  product(5, 70, 6, { label: 'bias by rows, few of them', named: { bias: { dims: [5, 1] } } }),
  product(3, 2100, 40, { label: 'bias by rows, long sums', options: { activation: 'gelu' }, named: { bias: { dims: [3, 1] } } }),
  product(70, 64, 66, { label: 'c and bias by rows', options: { beta: 0.5, activation: 'silu' }, named: { c: full(70, 66), bias: { dims: [70, 1] } } }),
  product(70, 33, 130, { label: 'relu and NaN', options: { activation: 'relu' }, fill: { fill: 'normal', at: { 40: NaN } } }),
];

const batched = (a, b, options = {}, named = undefined) => ({
  op: 'matmul', name: `[${a}] by [${b}] ${Object.keys({ ...options, ...named }).join(' ')} ${named?.c ? `[${named.c.dims}]` : ''}`.trim(), inputs: [{ dims: a }, { dims: b }], options, named,
});

const batches = [
  batched([2, 3, 4], [2, 4, 5]),
  batched([2, 3, 4], [4, 5]),
  batched([3, 4], [2, 4, 5]),
  batched([2, 1, 3, 4], [5, 4, 6]),
  batched([1, 5, 33, 17], [2, 1, 17, 31]),
  batched([7, 65, 16], [7, 16, 33], { alpha: 2 }),
  batched([4, 9, 8], [4, 8, 9], { transA: false, transB: false, activation: 'relu' }, { bias: { dims: [9] } }),
  batched([2, 8, 9], [2, 7, 8], { transA: true, transB: true }),
  batched([0, 3, 4], [4, 5]),
  batched([2, 0, 4], [2, 4, 5]),
  batched([2, 3, 0], [2, 0, 5]),
  batched([65537, 2, 3], [65537, 3, 2]),
  batched([2, 3, 4], [2, 4, 5], { beta: 2 }, { c: { dims: [2, 3, 5] } }),
  batched([2, 3, 4], [2, 4, 5], {}, { c: { dims: [5] } }),
  batched([2, 3, 4], [2, 4, 5], {}, { c: { dims: [3, 1] } }),
  batched([2, 3, 4], [2, 4, 5], {}, { c: { dims: [] } }),
  batched([3, 4, 5], [5, 6], { activation: 'relu' }, { bias: { dims: [4, 1] } }),
  batched([3, 1, 5], [3, 5, 1], {}, { bias: { dims: [1, 1] } }),
];

/** Results of another type than the operands. */
const halves = ['float16', 'bfloat16'];
const converted = [[9, 11, 13], [64, 300, 65], [1, 200, 33]].flatMap(([m, k, n]) => [
  product(m, k, n, { label: 'to float32', options: { outputType: 'float32' }, dtypes: ['float32', ...halves] }),
  ...halves.map((outputType) =>
    product(m, k, n, { label: `to ${outputType}`, options: { outputType, activation: 'gelu' }, named: { bias: { dims: [n] } }, dtypes: ['float32', outputType] })),
]);

/** Halves across the edges of the tensor cores' tiles, with all of the end. */
const halfTiles = [[130, 72, 264], [65, 200, 520], [257, 130, 67]].flatMap(([m, k, n]) => [
  ...[{}, ...transposes].map((options) => product(m, k, n, { options, label: `of halves ${Object.keys(options).join(' ')}`, dtypes: halves })),
  product(m, k, n, { label: 'of halves, all of it', options: { alpha: 0.5, beta: -1.5, activation: 'silu' }, named: { c: full(m, n), bias: { dims: [n] } }, dtypes: halves }),
  product(m, k, n, { label: 'of halves, bias by rows', options: { activation: 'relu', outputType: 'float32' }, named: { c: { dims: [1, n] }, bias: { dims: [m, 1] } }, dtypes: halves }),
]).concat(product(64, 1000, 72, { label: 'of positive halves', fill: 'positive', dtypes: halves }));
const halfBatches = [[[3, 70, 40], [3, 40, 72]], [[3, 40, 70], [40, 72]], [[2, 1, 70, 40], [2, 3, 40, 72]]].map(([a, b]) =>
  ({ ...batched(a, b, { transA: a[1] === 40, activation: 'relu' }, { bias: { dims: [72] } }), dtypes: halves }));

const views = [1, 2, 3].map((offset) => ({
  op: 'matmul', name: `views at offset ${offset}`, inputs: [{ dims: [33, 35], offset }, { dims: [35, 37], offset: offset + 1 }], named: { bias: { dims: [37], offset } }, options: {},
}));

/** One number out of range in A or B; the classes are those of a plain chain. */
const nonFinite = [
  { name: 'NaN in A', inputs: [{ dims: [5, 40], fill: { fill: 'normal', at: { 43: NaN } } }, { dims: [40, 6] }] },
  { name: 'NaN in B', inputs: [{ dims: [5, 40] }, { dims: [40, 6], fill: { fill: 'normal', at: { 100: NaN } } }] },
  { name: 'infinity in A', inputs: [{ dims: [70, 100], fill: { fill: 'normal', at: { 1234: Infinity } } }, { dims: [100, 70] }] },
  { name: 'infinity in B', inputs: [{ dims: [70, 100] }, { dims: [100, 70], fill: { fill: 'normal', at: { 1234: -Infinity } } }] },
  { name: 'infinity by zero', inputs: [{ dims: [3, 4], fill: [Infinity, 1, 1, 1, 1] }, { dims: [4, 3], fill: 0 }] },
  { name: 'infinities that cancel', inputs: [{ dims: [2, 2], fill: [Infinity, -Infinity, 1, 2] }, { dims: [2, 2], fill: 'ones' }] },
  { name: 'overflow', inputs: [{ dims: [3, 1], fill: 1e30 }, { dims: [1, 3], fill: [1e30, -1e30, 1] }], dtypes: ['float32'] },
  { name: 'largest numbers', inputs: [{ dims: [65, 70], fill: 1.5e38 }, { dims: [70, 65], fill: 0.0078125 }], dtypes: ['float32'] },
  { name: 'smallest numbers', inputs: [{ dims: [3, 70], fill: 1e-40 }, { dims: [70, 3], fill: 1 }], dtypes: ['float32'] },
].map((row) => ({ op: 'matmul', options: {}, ...row }));

export const cases = [...sweep, ...squares, ...large, ...turned, ...fills, ...extended, ...batches, ...converted, ...halfTiles, ...halfBatches, ...views, ...nonFinite];
