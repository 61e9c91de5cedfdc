// Convolutions of 16-bit types for the tensor cores of compute capability 9.0, small enough for the emulator. On a card with
// one multiprocessor the sizes decide which tile comes.
const conv = (name, x, w, options = {}, { op = 'conv2d', fillX = 'uniform', fillW = 'uniform', offset } = {}) => ({
  op,
  name: `halves, ${name}`,
  inputs: [{ dims: x, fill: fillX, offset }, { dims: w, fill: fillW, offset }],
  options,
  named: { bias: { dims: [w[0]], fill: 'uniform', offset } },
  dtypes: ['float16', 'bfloat16'],
  forms: ['arrays'],
});

const pads = [1, 1, 1, 1];

/** Filters and pixels of each tile, with blocks of channels odd and even in number, and pixels in eights, fours and ones. */
const tiles = [
  conv('64 x 64', [1, 70, 8, 8], [60, 70, 3, 3], { pads }),
  conv('64 x 128', [2, 40, 8, 8], [64, 40, 1, 2], { pads: [0, 0, 0, 1] }),
  conv('64 x 192', [3, 16, 8, 8], [61, 16, 1, 1]),
  conv('64 x 245', [5, 17, 7, 7], [64, 17, 3, 3], { pads }),
  conv('128 x 192', [4, 33, 6, 6], [127, 33, 3, 3], { pads }),
  conv('128 x 256', [5, 65, 7, 7], [128, 65, 1, 1]),
  conv('192 x 390', [2, 24, 13, 15], [190, 24, 3, 3], { pads }),
];

const geometry = [
  conv('stride 2', [2, 40, 15, 16], [48, 40, 3, 3], { strides: [2, 2], pads }),
  conv('strides, pads and dilations differ', [2, 32, 19, 23], [40, 32, 3, 2], { strides: [3, 1], pads: [2, 0, 1, 3], dilations: [2, 4] }),
  conv('small images', [40, 48, 3, 3], [40, 48, 3, 3], { pads }),
  conv('one window, wide strides', [70, 40, 5, 6], [48, 40, 4, 5], { strides: [7, 9] }),
  conv('one axis', [3, 40, 100], [48, 40, 5], { pads: [2, 2], strides: [2] }, { op: 'conv1d' }),
  conv('three axes', [2, 32, 5, 6, 7], [40, 32, 3, 3, 2], { pads: [1, 1, 0, 1, 1, 1], strides: [1, 2, 1] }, { op: 'conv3d' }),
  conv('unaligned', [2, 33, 8, 8], [37, 33, 3, 3], { pads }, { offset: 1 }),
];

/** Few channels, by windows. */
const windows = [
  conv('7x7 stride 2 of 3 channels', [2, 3, 37, 30], [64, 3, 7, 7], { strides: [2, 2], pads: [3, 3, 3, 3] }),
  conv('3x3 of 21 channels, dilated', [2, 21, 12, 11], [33, 21, 3, 3], { pads: [2, 3, 0, 1], dilations: [1, 2] }),
  conv('one axis of 4 channels', [3, 4, 200], [40, 4, 8], { strides: [3] }, { op: 'conv1d' }),
  conv('three axes of 2 channels', [2, 2, 6, 7, 9], [40, 2, 3, 3, 3], { pads: [1, 1, 1, 1, 1, 1], strides: [2, 1, 2] }, { op: 'conv3d' }),
  conv('NaN in 3 channels', [2, 3, 20, 21], [48, 3, 3, 3], { pads }, { fillX: { fill: 'uniform', at: { 77: NaN, 2000: Infinity } } }),
];

const ends = ['relu', 'gelu', 'clip'].map((activation) =>
  conv(activation, [2, 40, 9, 9], [70, 40, 3, 3], { pads, activation, ...(activation === 'clip' ? { activationAlpha: -1, activationBeta: 2 } : {}) }));

const at = (positions) => ({ fill: 'uniform', at: positions });

const special = [
  conv('NaN and infinities', [2, 40, 9, 9], [48, 40, 3, 3], { pads }, { fillX: at({ 77: NaN, 99: Infinity }), fillW: at({ 700: -Infinity }) }),
  conv('padding by a NaN weight', [2, 40, 9, 9], [48, 40, 3, 3], { pads }, { fillW: at({ 0: NaN }) }),
  conv('strict', [2, 40, 9, 9], [48, 40, 3, 3], { pads, precision: 'strict' }),
];

export const halves = [...tiles, ...geometry, ...windows, ...ends, ...special];
