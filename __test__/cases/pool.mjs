const pool = (op, name, dims, options, fill = 'normal', offset = 0) => ({ op, name, inputs: [{ dims, fill, offset }], options });

const shapes = [
  ['2x2 stride 2', [2, 3, 8, 10], { kernel: [2, 2], strides: [2, 2] }],
  ['default strides', [1, 2, 5, 6], { kernel: [2, 3] }],
  ['3x3 stride 2 pad 1', [2, 5, 15, 17], { kernel: [3, 3], strides: [2, 2], pads: [1, 1, 1, 1] }],
  ['asymmetric pads', [1, 2, 7, 9], { kernel: [3, 4], strides: [2, 3], pads: [2, 0, 1, 3] }],
  ['ceil mode', [1, 3, 8, 7], { kernel: [3, 3], strides: [2, 2], ceilMode: true }],
  ['ceil mode drops a window in the padding', [1, 1, 4, 4], { kernel: [2, 2], strides: [3, 3], pads: [0, 0, 1, 1], ceilMode: true }],
  ['ceil mode with pads', [1, 2, 9, 6], { kernel: [3, 2], strides: [3, 3], pads: [1, 0, 1, 1], ceilMode: true }],
  ['dilation', [1, 2, 11, 12], { kernel: [3, 2], dilations: [2, 3], strides: [1, 2] }],
  ['dilation, pads and ceil mode', [1, 2, 10, 9], { kernel: [2, 2], dilations: [3, 2], strides: [2, 2], pads: [1, 1, 1, 1], ceilMode: true }],
  ['SAME_UPPER', [1, 2, 7, 8], { kernel: [2, 2], autoPad: 'SAME_UPPER' }],
  ['SAME_UPPER stride 3', [1, 2, 7, 8], { kernel: [4, 3], strides: [3, 3], autoPad: 'SAME_UPPER' }],
  ['SAME_LOWER', [1, 2, 7, 8], { kernel: [2, 4], strides: [2, 2], autoPad: 'SAME_LOWER' }],
  ['VALID', [1, 2, 7, 8], { kernel: [3, 3], strides: [2, 2], autoPad: 'VALID' }],
  ['window of the whole input', [2, 3, 5, 6], { kernel: [5, 6] }],
  ['window of one', [2, 3, 5, 6], { kernel: [1, 1], strides: [2, 1] }],
  ['13x13 stride 1', [1, 2, 13, 14], { kernel: [13, 13], strides: [1, 1], pads: [6, 6, 6, 6] }],
  ['129 channels', [1, 129, 4, 5], { kernel: [2, 2], strides: [1, 1] }],
  ['257 columns', [1, 1, 3, 257], { kernel: [2, 2], strides: [2, 2] }],
  ['one row', [1, 2, 1, 33], { kernel: [1, 3], strides: [1, 2] }],
  ['more planes than a grid has in y', [65537, 1, 2, 3], { kernel: [2, 2] }],
  ['empty batch', [0, 2, 8, 8], { kernel: [2, 2] }],
  ['no channels', [2, 0, 8, 8], { kernel: [2, 2] }],
];

const both = ['maxPool2d', 'averagePool2d'].flatMap((op) => shapes.map(([name, dims, options]) => pool(op, name, dims, options)));

const others = ['maxPool', 'averagePool'].flatMap((op) => [
  pool(`${op}1d`, 'plain', [2, 3, 33], { kernel: [3] }),
  pool(`${op}1d`, 'everything', [2, 5, 65], { kernel: [4], strides: [3], pads: [2, 1], dilations: [2], ceilMode: true }),
  pool(`${op}1d`, 'SAME_LOWER', [1, 2, 16], { kernel: [4], strides: [3], autoPad: 'SAME_LOWER' }),
  pool(`${op}1d`, 'non-finite numbers', [1, 3, 40], { kernel: [2], strides: [2] }, 'nonFinite', 1),
  pool(`${op}1d`, 'empty batch', [0, 2, 8], { kernel: [2] }),
  pool(`${op}3d`, 'plain', [1, 2, 5, 6, 7], { kernel: [2, 2, 2], strides: [2, 2, 2] }),
  pool(`${op}3d`, 'everything', [2, 3, 7, 6, 5], { kernel: [3, 2, 2], strides: [2, 1, 2], pads: [1, 0, 1, 1, 1, 0], dilations: [1, 2, 1], ceilMode: true }),
  pool(`${op}3d`, 'SAME_UPPER', [1, 2, 4, 5, 6], { kernel: [2, 3, 2], strides: [1, 2, 3], autoPad: 'SAME_UPPER' }),
  pool(`${op}3d`, 'non-finite numbers', [1, 2, 4, 4, 4], { kernel: [2, 2, 2] }, 'nonFinite', 1),
  pool(`${op}3d`, 'no channels', [1, 0, 4, 4, 4], { kernel: [2, 2, 2] }),
]);

const counted = shapes.filter(([, , options]) => options.pads || options.autoPad || options.ceilMode).map(([name, dims, options]) =>
  pool('averagePool2d', `${name}, pads counted`, dims, { ...options, countIncludePad: true }));

const special = ['maxPool2d', 'averagePool2d'].flatMap((op) => [
  pool(op, 'NaN in a window', [1, 2, 8, 8], { kernel: [3, 3], strides: [2, 2], pads: [1, 1, 1, 1] }, { fill: 'normal', at: { 0: NaN, 20: NaN, 127: NaN } }),
  pool(op, 'non-finite numbers', [1, 3, 9, 9], { kernel: [2, 2], strides: [1, 1], pads: [1, 1, 1, 1] }, 'nonFinite'),
  pool(op, 'all -Infinity', [1, 1, 4, 4], { kernel: [2, 2], pads: [1, 1, 1, 1], strides: [2, 2] }, -Infinity),
  pool(op, 'view', [1, 3, 9, 7], { kernel: [3, 3] }, 'normal', 1),
  pool(op, 'negative numbers stay below the padding', [1, 1, 4, 4], { kernel: [3, 3], pads: [1, 1, 1, 1] }, { fill: 'positive', scale: -1 }),
]);

const globals = ['globalMaxPool', 'globalAveragePool'].flatMap((op) => [
  ...[[2, 3, 7, 7], [1, 1, 1, 1], [3, 65, 1, 5], [1, 2, 33, 31], [2, 2, 64, 65], [4, 5, 129], [1, 3, 4, 5, 6], [0, 3, 4, 4], [3, 0, 4, 4]].map((dims) =>
    pool(op, `[${dims}]`, dims, {})),
  pool(op, 'non-finite numbers', [3, 4, 5, 5], {}, 'nonFinite'),
  pool(op, 'one NaN', [2, 3, 16, 16], {}, { fill: 'normal', at: { 300: NaN } }),
  pool(op, 'all -Infinity', [2, 2, 3, 3], {}, -Infinity),
  pool(op, 'view', [2, 3, 9, 9], {}, 'positive', 3),
  pool(op, 'more planes than a grid has in y', [1, 65537, 2, 2], {}),
]);

const placed = [
  ...shapes.flatMap(([name, dims, options]) => [0, 1].map((storageOrder) => pool('maxPool2dWithIndices', `${name}, order ${storageOrder}`, dims, { ...options, storageOrder }))),
  pool('maxPool2dWithIndices', 'ties', [2, 2, 9, 8], { kernel: [3, 3] }, 'ties'),
  pool('maxPool2dWithIndices', 'non-finite numbers', [1, 3, 9, 9], { kernel: [2, 2], pads: [1, 1, 1, 1] }, 'nonFinite'),
  pool('maxPool2dWithIndices', 'all -Infinity, view', [1, 1, 4, 4], { kernel: [2, 2], strides: [2, 2] }, -Infinity, 1),
  pool('maxPool1dWithIndices', 'everything', [2, 5, 65], { kernel: [4], strides: [3], pads: [2, 1], dilations: [2], ceilMode: true }),
  ...[0, 1].map((storageOrder) => pool('maxPool3dWithIndices', `everything, order ${storageOrder}`, [2, 3, 7, 6, 5], { kernel: [3, 2, 2], strides: [2, 1, 2], pads: [1, 0, 1, 1, 1, 0], storageOrder })),
];
const ofBytes = ['maxPool2d', 'maxPool2dWithIndices'].flatMap((op) => shapes.slice(0, 9).map(([name, dims, options]) => ({
  ...pool(op, `bytes, ${name}`, dims, options, 'wholes'), dtypes: ['int8', 'uint8'],
})));

export const cases = [...placed, ...ofBytes, ...both, ...others, ...counted, ...special, ...globals, pool('globalAveragePool', 'no pixels', [2, 3, 0, 4], {})];
