const conv = (op, name, x, w, options = {}, extra = {}) => ({
  op, name, inputs: [{ dims: x, fill: extra.x, offset: extra.offset }, { dims: w, fill: extra.w, offset: extra.offset }], options, named: extra.named, dtypes: extra.dtypes,
});
const bias = (filters) => ({ named: { bias: { dims: [filters] } } });

const one = [
  conv('conv1d', 'plain', [2, 3, 17], [4, 3, 3]),
  conv('conv1d', 'stride, pads, dilation', [1, 2, 33], [5, 2, 4], { strides: [2], pads: [3, 1], dilations: [2] }),
  conv('conv1d', 'kernel 1', [3, 16, 65], [7, 16, 1], {}, bias(7)),
  conv('conv1d', 'kernel 128', [1, 1, 257], [8, 1, 128], { strides: [4] }),
  conv('conv1d', 'groups', [2, 6, 31], [9, 2, 3], { group: 3, pads: [1, 1], activation: 'relu' }, bias(9)),
  conv('conv1d', 'depthwise', [2, 15, 64], [15, 1, 5], { group: 15, pads: [2, 2] }),
  conv('conv1d', 'SAME_UPPER', [1, 2, 16], [3, 2, 4], { autoPad: 'SAME_UPPER', strides: [3] }),
  conv('conv1d', 'SAME_LOWER', [1, 2, 16], [3, 2, 4], { autoPad: 'SAME_LOWER', strides: [3] }),
  conv('conv1d', 'empty batch', [0, 2, 16], [3, 2, 4]),
];

/** Output and channel counts about the tile sizes. */
const counts = [1, 15, 16, 17, 31, 33, 63, 64, 65].flatMap((c) => [
  conv('conv2d', `3x3, ${c} channels`, [1, c, 9, 8], [5, c, 3, 3], { pads: [1, 1, 1, 1] }),
  conv('conv2d', `3x3, ${c} filters`, [1, 6, 9, 8], [c, 6, 3, 3], { pads: [1, 1, 1, 1] }, bias(c)),
  conv('conv2d', `1x1, ${c} channels and filters`, [1, c, 5, 13], [c, c, 1, 1]),
]);

const kernels = [[1, 1], [1, 3], [3, 1], [2, 2], [5, 5], [7, 7], [1, 7], [5, 1], [4, 3]].map(([h, w]) =>
  conv('conv2d', `kernel ${h}x${w}`, [2, 3, 14, 15], [8, 3, h, w], { pads: [h >> 1, w >> 1, (h - 1) >> 1, (w - 1) >> 1] }, bias(8)));

const geometry = [
  conv('conv2d', 'stride 2', [2, 8, 15, 16], [12, 8, 3, 3], { strides: [2, 2], pads: [1, 1, 1, 1] }),
  conv('conv2d', 'strides differ', [1, 3, 20, 21], [4, 3, 3, 2], { strides: [3, 1] }),
  conv('conv2d', 'asymmetric pads', [1, 3, 7, 9], [4, 3, 3, 3], { pads: [2, 0, 1, 3] }),
  conv('conv2d', 'dilation', [1, 4, 17, 19], [6, 4, 3, 3], { dilations: [2, 3], pads: [2, 3, 2, 3] }),
  conv('conv2d', 'dilation and stride', [2, 3, 19, 17], [6, 3, 3, 3], { dilations: [2, 2], strides: [2, 3], pads: [1, 2, 3, 0] }),
  conv('conv2d', 'kernel as large as the input', [2, 5, 6, 7], [3, 5, 6, 7]),
  conv('conv2d', 'kernel as large as the padded input', [1, 2, 3, 3], [3, 2, 5, 5], { pads: [1, 1, 1, 1] }),
  conv('conv2d', 'pads wider than the kernel', [1, 2, 4, 4], [3, 2, 2, 2], { pads: [3, 3, 3, 3] }),
  conv('conv2d', 'one pixel', [3, 4, 1, 1], [5, 4, 1, 1], {}, bias(5)),
  conv('conv2d', 'stem 7x7 stride 2', [1, 3, 33, 31], [16, 3, 7, 7], { strides: [2, 2], pads: [3, 3, 3, 3] }, bias(16)),
  conv('conv2d', 'patches 14x14', [1, 3, 28, 42], [6, 3, 14, 14], { strides: [14, 14] }),
  conv('conv2d', 'many channels, few pixels', [2, 129, 4, 4], [33, 129, 3, 3], { pads: [1, 1, 1, 1] }),
  conv('conv2d', 'many pixels, few channels', [1, 2, 65, 67], [3, 2, 3, 3], { pads: [1, 1, 1, 1] }),
  conv('conv2d', 'batch 9', [9, 4, 7, 5], [8, 4, 3, 3], { pads: [1, 1, 1, 1] }),
  ...['VALID', 'SAME_UPPER', 'SAME_LOWER'].flatMap((autoPad) => [[2, 2], [3, 2]].map((kernel) =>
    conv('conv2d', `${autoPad} ${kernel}`, [1, 3, 8, 7], [4, 3, ...kernel], { autoPad, strides: [2, 1] }))),
];

const groups = [
  conv('conv2d', 'two groups', [2, 8, 9, 7], [6, 4, 3, 3], { group: 2, pads: [1, 1, 1, 1] }, bias(6)),
  conv('conv2d', 'depthwise 3x3', [2, 33, 14, 13], [33, 1, 3, 3], { group: 33, pads: [1, 1, 1, 1] }, bias(33)),
  conv('conv2d', 'depthwise 5x5 stride 2', [1, 16, 15, 17], [16, 1, 5, 5], { group: 16, pads: [2, 2, 2, 2], strides: [2, 2], activation: 'relu' }, bias(16)),
  conv('conv2d', 'depthwise, dilated', [1, 7, 15, 17], [7, 1, 3, 3], { group: 7, dilations: [2, 2], pads: [2, 2, 2, 2] }),
  conv('conv2d', 'depthwise, dilated along H', [2, 3, 23, 16], [3, 1, 3, 3], { group: 3, dilations: [3, 1], pads: [3, 1, 2, 1], activation: 'gelu' }, bias(3)),
  conv('conv2d', 'depthwise, dilated along W', [1, 3, 9, 20], [3, 1, 5, 5], { group: 3, dilations: [1, 2], pads: [2, 4, 2, 4] }),
  conv('conv2d', 'depthwise, dilated, stride 2', [1, 3, 31, 16], [3, 1, 5, 5], { group: 3, dilations: [2, 1], strides: [2, 2], pads: [4, 2, 4, 2] }, bias(3)),
  conv('conv2d', 'depthwise, dilation beyond the result', [1, 2, 9, 8], [2, 1, 3, 3], { group: 2, dilations: [4, 1], pads: [0, 1, 0, 1] }),
  conv('conv2d', 'depthwise, vectors', [3, 4, 15, 24], [4, 1, 3, 3], { group: 4, pads: [1, 1, 1, 1], activation: 'relu' }, bias(4)),
  conv('conv2d', 'depthwise, vectors, stride 2', [1, 4, 13, 16], [8, 1, 3, 3], { group: 4, pads: [1, 1, 1, 1], strides: [2, 2] }),
  conv('conv2d', 'depthwise, pads on one side', [1, 4, 12, 16], [4, 1, 3, 3], { group: 4, pads: [0, 0, 2, 2] }),
  conv('conv2d', 'depthwise, NaN in a row', [1, 2, 12, 16], [2, 1, 5, 5], { group: 2, pads: [2, 2, 2, 2] }, { x: { fill: 'normal', at: { 77: NaN, 300: Infinity } } }),
  conv('conv2d', 'depthwise, padding by an infinite weight', [1, 2, 8, 8], [2, 1, 3, 3], { group: 2, pads: [1, 1, 1, 1] }, { w: { fill: 'ones', at: { 0: Infinity } } }),
  conv('conv2d', 'depthwise, views', [1, 3, 9, 8], [3, 1, 3, 3], { group: 3, pads: [1, 1, 1, 1] }, { offset: 1 }),
  conv('conv2d', 'depthwise, two filters a channel', [1, 5, 8, 9], [10, 1, 3, 3], { group: 5 }),
  conv('conv2d', '17 groups of 2', [1, 34, 6, 6], [51, 2, 3, 3], { group: 17, pads: [1, 1, 1, 1] }),
];

const activations = ['relu', 'sigmoid', 'tanh', 'gelu', 'silu'].map((activation) =>
  conv('conv2d', activation, [1, 4, 6, 6], [5, 4, 3, 3], { activation }, bias(5))).concat([
  conv('conv2d', 'leakyRelu 0.25', [1, 4, 6, 6], [5, 4, 3, 3], { activation: 'leakyRelu', activationAlpha: 0.25 }, bias(5)),
  conv('conv2d', 'clip to 0 and 6', [1, 4, 6, 6], [5, 4, 3, 3], { activation: 'clip', activationAlpha: 0, activationBeta: 6 }, bias(5)),
  conv('conv2d', 'relu and NaN', [1, 4, 9, 9], [17, 4, 3, 3], { activation: 'relu' }, { x: { fill: 'normal', at: { 40: NaN } } }),
]);

const odd = [
  conv('conv2d', 'empty batch', [0, 3, 8, 8], [4, 3, 3, 3]),
  conv('conv2d', 'no filters', [2, 3, 8, 8], [0, 3, 3, 3]),
  conv('conv2d', 'no channels', [2, 0, 8, 8], [4, 0, 3, 3], {}, bias(4)),
  conv('conv2d', 'views', [2, 5, 9, 9], [6, 5, 3, 3], { pads: [1, 1, 1, 1] }, { offset: 3, named: { bias: { dims: [6], offset: 1 } } }),
  conv('conv2d', 'NaN spreads over its window', [1, 2, 8, 8], [3, 2, 3, 3], { pads: [1, 1, 1, 1] }, { x: { fill: 'normal', at: { 27: NaN } } }),
  conv('conv2d', 'infinity in the input', [1, 2, 8, 8], [3, 2, 3, 3], { pads: [1, 1, 1, 1] }, { x: { fill: 'positive', at: { 27: Infinity } }, w: 'positive' }),
  conv('conv2d', 'padding by a NaN weight', [1, 1, 3, 3], [1, 1, 3, 3], { pads: [1, 1, 1, 1] }, { w: { fill: 'ones', at: { 0: NaN } } }),
  conv('conv2d', 'padding by an infinite weight', [1, 1, 3, 3], [2, 1, 3, 3], { pads: [1, 1, 1, 1] }, { x: 'positive', w: { fill: 'ones', at: { 8: Infinity } } }),
  conv('conv2d', 'more images than a grid has in z', [65537, 1, 2, 2], [1, 1, 2, 2]),
  conv('conv2d', 'more depthwise channels than a grid has in y', [1, 65537, 2, 3], [65537, 1, 2, 2], { group: 65537 }),
  conv('conv2d', 'positive numbers', [1, 65, 7, 7], [4, 65, 3, 3], {}, { x: 'positive', w: 'positive' }),
];

const three = [
  conv('conv3d', 'plain', [1, 2, 5, 6, 7], [3, 2, 3, 3, 3]),
  conv('conv3d', 'everything', [2, 4, 5, 6, 7], [6, 2, 2, 3, 2], { strides: [1, 2, 2], pads: [1, 0, 2, 0, 1, 1], dilations: [2, 1, 1], group: 2, activation: 'relu' }, bias(6)),
  conv('conv3d', 'SAME_LOWER', [1, 1, 4, 5, 6], [2, 1, 2, 2, 2], { autoPad: 'SAME_LOWER' }),
  conv('conv3d', 'kernel 1', [1, 17, 3, 4, 5], [16, 17, 1, 1, 1]),
  conv('conv3d', 'empty batch', [0, 1, 4, 5, 6], [2, 1, 2, 2, 2]),
];

const transposed = [
  conv('convTranspose2d', 'plain', [1, 3, 5, 6], [3, 4, 3, 3]),
  conv('convTranspose2d', '2x2 stride 2', [2, 16, 7, 5], [16, 8, 2, 2], { strides: [2, 2] }, bias(8)),
  conv('convTranspose2d', '4x4 stride 2 pad 1', [1, 5, 8, 7], [5, 17, 4, 4], { strides: [2, 2], pads: [1, 1, 1, 1] }),
  conv('convTranspose2d', 'asymmetric pads', [1, 2, 6, 5], [2, 3, 3, 4], { strides: [1, 3], pads: [2, 0, 1, 3] }),
  conv('convTranspose2d', 'outputPads', [1, 2, 4, 5], [2, 3, 3, 3], { strides: [2, 3], outputPads: [1, 2], pads: [1, 1, 1, 1] }),
  conv('convTranspose2d', 'outputShape', [1, 2, 3, 3], [2, 2, 3, 3], { strides: [3, 2], outputShape: [10, 8] }),
  conv('convTranspose2d', 'outputShape that crops, odd', [1, 2, 4, 4], [2, 2, 4, 4], { strides: [2, 2], outputShape: [9, 7] }),
  conv('convTranspose2d', 'outputShape and SAME_UPPER', [1, 2, 4, 4], [2, 2, 4, 4], { strides: [2, 2], outputShape: [9, 7], autoPad: 'SAME_UPPER' }),
  conv('convTranspose2d', 'SAME_UPPER', [1, 2, 4, 5], [2, 2, 3, 3], { strides: [2, 2], autoPad: 'SAME_UPPER' }),
  conv('convTranspose2d', 'SAME_LOWER', [1, 2, 4, 5], [2, 2, 3, 3], { strides: [2, 2], autoPad: 'SAME_LOWER' }),
  conv('convTranspose2d', 'dilation', [1, 3, 5, 4], [3, 2, 3, 2], { dilations: [2, 3], strides: [2, 1] }),
  conv('convTranspose2d', 'groups', [2, 6, 4, 5], [6, 2, 3, 3], { group: 3, strides: [2, 2], pads: [1, 1, 1, 1], activation: 'relu' }, bias(6)),
  conv('convTranspose2d', 'depthwise', [1, 9, 6, 5], [9, 1, 3, 3], { group: 9, strides: [2, 2] }),
  conv('convTranspose2d', 'kernel 1, stride 3', [1, 4, 3, 3], [4, 5, 1, 1], { strides: [3, 3] }, bias(5)),
  conv('convTranspose2d', 'empty batch', [0, 3, 5, 6], [3, 4, 3, 3]),
  conv('convTranspose2d', 'no channels', [1, 0, 5, 6], [0, 4, 3, 3]),
  conv('convTranspose2d', 'NaN reaches its window alone', [1, 2, 5, 5], [2, 2, 3, 3], { strides: [2, 2] }, { x: { fill: 'normal', at: { 12: NaN } } }),
];

const volumes = [
  conv('convTranspose3d', 'plain', [1, 2, 3, 4, 3], [2, 3, 2, 3, 2]),
  conv('convTranspose3d', 'everything', [2, 4, 3, 2, 4], [4, 3, 2, 3, 2], { strides: [2, 1, 3], pads: [1, 0, 1, 0, 1, 1], dilations: [1, 2, 1], outputPads: [1, 0, 2], group: 2, activation: 'relu' }, bias(6)),
  conv('convTranspose3d', 'outputShape', [1, 2, 3, 3, 2], [2, 2, 3, 3, 2], { strides: [2, 3, 2], outputShape: [7, 10, 4] }),
  conv('convTranspose3d', 'empty batch', [0, 2, 3, 4, 3], [2, 3, 2, 3, 2]),
];

export const cases = [...volumes, ...one, ...counts, ...kernels, ...geometry, ...groups, ...activations, ...odd, ...three, ...transposed];
