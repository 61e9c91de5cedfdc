const small = ['uint8', 'int8', 'uint16', 'int16'];
const positive = { fill: 'positive', scale: 0.1 };

/** Numbers of which many lie between two whole ones once they are divided by 0.5. */
const ties = { fill: 'halves', scale: 0.5 };

const quantize = (name, dims, scale, options, { fill = { fill: 'normal', scale: 3 }, zero, scaleFill = positive, ...rest } = {}) => ({
  op: 'quantizeLinear', name, options, inputs: [{ dims, fill, offset: rest.offset }, { dims: scale, fill: scaleFill }],
  named: zero === undefined ? undefined : { zeroPoint: { dims: scale, fill: zero, type: options.outputType } }, ...rest,
});

const quantized = [
  ...small.flatMap((outputType) => [
    quantize(`to ${outputType}`, [5, 7], [], { outputType }),
    quantize(`to ${outputType}, zero point`, [5, 7], [1], { outputType }, { zero: [7] }),
    quantize(`to ${outputType}, beyond the range`, [64], [], { outputType }, { fill: { fill: 'moderate', scale: 1e6 }, zero: [3], dtypes: ['float32', 'float64'] }),
    quantize(`to ${outputType}, ties`, [3, 40], [], { outputType }, { fill: ties, scaleFill: 0.5, zero: [5] }),
    quantize(`to ${outputType}, special numbers`, [6], [], { outputType }, { fill: [NaN, Infinity, -Infinity, 0, -0, 1], scaleFill: 0.5, zero: [9] }),
  ]),
  ...[0, 1, 2, -1].map((axis) => quantize(`axis ${axis}`, [3, 5, 4], [[3, 5, 4].at(axis)], { axis, outputType: 'int8' }, { zero: 'ties' })),
  quantize('axis by default', [2, 3, 2, 2], [3], { outputType: 'uint8' }, { zero: [1, 128, 7] }),
  quantize('blocks along axis 1', [3, 6, 2], [3, 2, 2], { axis: 1, blockSize: 3, outputType: 'int8' }, { zero: 'ties' }),
  quantize('blocks along the last axis, ragged', [3, 7], [3, 3], { axis: 1, blockSize: 3, outputType: 'uint8' }, { zero: [1, 2] }),
  quantize('one number', [], [], { outputType: 'int8' }),
  quantize('nothing', [0, 3], [], { outputType: 'int8' }),
  quantize('nothing, by axis', [3, 0], [3], { axis: 0, outputType: 'int8' }),
  quantize('long', [3, 70001], [3], { axis: 0, outputType: 'uint8' }, { dtypes: ['float32'], zero: [1, 2, 3] }),
  quantize('view', [5, 9], [], { outputType: 'int8' }, { offset: 1 }),
];

const dequantize = (type, name, dims, scale, options = {}, { fill = 'wholes', zero, ...rest } = {}) => ({
  op: 'dequantizeLinear', name: `${type}, ${name}`, options, inputs: [{ dims, fill, type }, { dims: scale, fill: positive }],
  named: zero === undefined ? undefined : { zeroPoint: { dims: scale, fill: zero, type } }, ...rest,
});

const floats = [
  ...[...small, 'int32'].flatMap((type) => [
    dequantize(type, 'one scale', [5, 7], []),
    dequantize(type, 'zero point', [5, 7], [1], {}, { zero: [3] }),
    dequantize(type, 'axis 0', [3, 5, 2], [3], { axis: 0 }, { zero: [1, 0, 2] }),
    dequantize(type, 'last axis', [3, 5], [5], { axis: -1 }, { zero: [1, 0, 2] }),
    dequantize(type, 'blocks', [3, 7, 2], [3, 3, 2], { axis: 1, blockSize: 3 }, { zero: [1, 0, 2, 4] }),
    dequantize(type, 'blocks along the last axis', [4, 8], [4, 2], { axis: 1, blockSize: 4 }),
  ]),
  dequantize('uint8', 'the ends', [4], [], {}, { fill: [0, 255, 1, 254], zero: [255] }),
  dequantize('int8', 'the ends', [4], [], {}, { fill: [-128, 127, 1, -1], zero: [-128] }),
  dequantize('uint8', 'one number', [], []),
  dequantize('uint8', 'nothing', [3, 0], []),
  dequantize('int8', 'long', [70001, 3], [3], { axis: 1 }, { dtypes: ['float32'] }),
];

const requantize = (name, dims, scale, options, zero, fill = { fill: 'integers', scale: 37 }) => ({
  op: 'requantizeLinear', name, options, inputs: [{ dims, fill, type: 'int32' }, { dims: scale, fill: { fill: 'positive', scale: 0.05 } }],
  named: zero && { zeroPoint: { dims: scale, fill: zero, type: options.outputType } },
});

const ends = [
  ...small.map((outputType) => requantize(`to ${outputType}`, [6, 9], [], { outputType }, [3])),
  requantize('by axis', [2, 3, 4], [3], { outputType: 'uint8' }, [128, 0, 7]),
  requantize('large sums', [50], [], { outputType: 'int16' }, undefined, { fill: 'wholes' }),
];

const dynamic = (name, dims, fill, offset) => ({ op: 'dynamicQuantizeLinear', name, options: {}, inputs: [{ dims, fill, offset }] });
const dynamics = [
  dynamic('plain', [5, 7], 'normal'),
  dynamic('above 0', [40], 'positive'),
  dynamic('below 0', [40], { fill: 'positive', scale: -1 }),
  dynamic('zeros', [4], 'zeros'),
  dynamic('one number', [], 'normal'),
  dynamic('nothing', [0], 'normal'),
  dynamic('long', [70001], { fill: 'normal', shift: 0.3 }),
  dynamic('view', [33], 'normal', 1),
];

const bytes = ['uint8', 'int8'];
const numbers = { fill: 'integers', scale: 12, shift: 0 };
const ofBytes = { uint8: { fill: 'integers', scale: 12, shift: 110 }, int8: numbers };
const product = (name, [a, b], { types = ['uint8', 'int8'], zeros = {}, fills } = {}) => ({
  op: 'matMulInteger', name: `${types}, ${name}`, options: {}, dtypes: [types[0]],
  inputs: [{ dims: a, fill: fills?.[0] ?? ofBytes[types[0]] }, { dims: b, fill: fills?.[1] ?? ofBytes[types[1]], type: types[1] }],
  named: Object.fromEntries(Object.entries(zeros).map(([name, dims]) => [name, { dims, fill: [3, 100, 7, 0], type: types[name === 'aZeroPoint' ? 0 : 1] }])),
});

const products = [
  ...bytes.flatMap((a) => bytes.flatMap((b) => [
    product('plain', [[5, 9], [9, 7]], { types: [a, b] }),
    product('zero points', [[5, 9], [9, 7]], { types: [a, b], zeros: { aZeroPoint: [], bZeroPoint: [1] } }),
    product('zero points by rows and columns', [[5, 9], [9, 7]], { types: [a, b], zeros: { aZeroPoint: [5], bZeroPoint: [7] } }),
    product('sums beyond float32', [[3, 700], [700, 4]], { types: [a, b], zeros: { aZeroPoint: [] }, fills: [a === 'int8' ? -128 : 255, b === 'int8' ? -128 : 255] }),
  ])),
  product('batches', [[2, 1, 3, 5], [4, 5, 6]], { zeros: { aZeroPoint: [2, 1, 3, 1], bZeroPoint: [4, 1, 6] } }),
  product('a batch by one matrix', [[3, 2, 5], [5, 6]], { zeros: { aZeroPoint: [2], bZeroPoint: [6] } }),
  product('one matrix by a batch', [[2, 5], [3, 5, 6]], { zeros: { aZeroPoint: [], bZeroPoint: [] } }),
  product('one row', [[1, 300], [300, 40]], { zeros: { bZeroPoint: [40] } }),
  product('one of each', [[1, 1], [1, 1]]),
  product('no terms', [[3, 0], [0, 4]]),
  product('no rows', [[0, 3], [3, 4]]),
  product('no batch', [[0, 2, 3], [3, 4]]),
  product('larger', [[65, 300], [300, 70]], { zeros: { aZeroPoint: [], bZeroPoint: [] } }),
];

const conv = (name, x, w, options = {}, { types = ['uint8', 'int8'], zeros = {} } = {}) => ({
  op: 'convInteger', name: `${types}, ${name}`, options, dtypes: [types[0]],
  inputs: [{ dims: x, fill: ofBytes[types[0]] }, { dims: w, fill: ofBytes[types[1]], type: types[1] }],
  named: Object.fromEntries(Object.entries(zeros).map(([name, dims]) => [name, { dims, fill: [90, 3, 7], type: types[name === 'xZeroPoint' ? 0 : 1] }])),
});

const both = { xZeroPoint: [], wZeroPoint: [1] };
const windows = [
  ...bytes.flatMap((x) => bytes.map((w) => conv('plain', [2, 3, 5, 6], [4, 3, 3, 3], { pads: [1, 1, 1, 1] }, { types: [x, w], zeros: both }))),
  conv('no zero points', [1, 2, 5, 5], [3, 2, 2, 2]),
  conv('one axis', [2, 4, 9], [6, 2, 3], { group: 2, strides: [2], pads: [1, 0] }, { zeros: both }),
  conv('three axes', [1, 2, 4, 5, 3], [3, 2, 2, 3, 1], { dilations: [1, 2, 1], pads: [0, 1, 0, 1, 0, 0] }, { zeros: both }),
  conv('zero points by filters', [1, 2, 5, 5], [3, 2, 3, 3], { autoPad: 'SAME_UPPER', strides: [2, 2] }, { zeros: { xZeroPoint: [1], wZeroPoint: [3] } }),
  conv('depthwise', [1, 6, 7, 7], [6, 1, 3, 3], { group: 6, pads: [1, 1, 1, 1] }, { zeros: both }),
  conv('sums beyond float32', [1, 64, 4, 4], [2, 64, 3, 3], {}, { zeros: both }),
  conv('no images', [0, 2, 5, 5], [3, 2, 3, 3]),
];

export const cases = [...quantized, ...floats, ...ends, ...dynamics, ...products, ...windows];

export const levels = {
  quantizeLinear: 'exact',
  dequantizeLinear: 'rounded',
  requantizeLinear: 'exact',
  dynamicQuantizeLinear: 'exact',
  matMulInteger: 'exact',
  convInteger: 'exact',
};

/** One small call for each kernel. */
export const kernels = [
  quantize('kernels', [40], [], { outputType: 'int8' }, { zero: [1] }),
  dequantize('uint8', 'kernels', [40], []),
  ends[0],
  dynamics[0],
].map((row) => ({ ...row, forms: ['arrays'], dtypes: row.op === 'requantizeLinear' || row.op === 'dynamicQuantizeLinear' ? ['float32'] : row.dtypes }));
