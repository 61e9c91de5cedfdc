// Convolutions for the tensor cores of compute capability 9.0, small enough for the emulator. On a card with one
// multiprocessor the route pays early; which of its tiles comes, the sizes decide.
const conv = (name, x, w, options = {}, extra = {}) => ({
  op: extra.op ?? 'conv2d',
  name,
  inputs: [{ dims: x, fill: extra.x ?? 'uniform', offset: extra.offset }, { dims: w, fill: extra.w ?? 'uniform', offset: extra.offset }],
  options,
  named: extra.bias === false ? undefined : { bias: { dims: [w[0]], fill: 'uniform', offset: extra.offset } },
  dtypes: ['float32'],
  forms: ['arrays'],
  level: extra.level,
});

const pads = [1, 1, 1, 1];

/** Blocks of 64 channels and of 64 filters, whole and with tails; pixels that end within a tile and an image. */
const sizes = [
  conv('3x3', [2, 64, 12, 11], [64, 64, 3, 3], { pads }),
  conv('3x3 without bias', [3, 40, 9, 8], [33, 40, 3, 3], { pads }, { bias: false }),
  conv('65 channels, 129 filters', [2, 65, 9, 7], [129, 65, 2, 3]),
  conv('130 filters, whole tiles', [1, 64, 16, 16], [130, 64, 1, 1]),
  conv('1x1', [3, 72, 13, 13], [70, 72, 1, 1]),
  conv('192 pixels', [3, 24, 8, 8], [64, 24, 3, 3], { pads }),
  conv('small images', [40, 48, 3, 3], [40, 48, 3, 3], { pads }),
  conv('unaligned', [2, 33, 9, 9], [37, 33, 3, 3], { pads }, { offset: 1 }),
];

const geometry = [
  conv('stride 2', [2, 40, 15, 16], [48, 40, 3, 3], { strides: [2, 2], pads }),
  conv('strides, pads and dilations differ', [2, 32, 19, 23], [40, 32, 3, 2], { strides: [3, 1], pads: [2, 0, 1, 3], dilations: [2, 4] }),
  conv('5x5 stride 3', [2, 33, 17, 14], [40, 33, 5, 5], { strides: [3, 3], pads: [2, 2, 2, 2] }),
  conv('7x7 stride 2', [1, 20, 30, 30], [32, 20, 7, 7], { strides: [2, 2], pads: [3, 3, 3, 3] }),
  conv('one window, wide strides', [70, 40, 5, 6], [48, 40, 4, 5], { strides: [7, 9] }),
  conv('pads wider than the kernel', [2, 40, 6, 6], [48, 40, 2, 2], { pads: [3, 3, 3, 3] }),
  conv('patches', [2, 16, 24, 24], [64, 16, 8, 8], { strides: [8, 8] }),
  conv('one axis', [3, 40, 100], [48, 40, 5], { pads: [2, 2], strides: [2] }, { op: 'conv1d' }),
  conv('three axes', [2, 32, 5, 6, 7], [40, 32, 3, 3, 2], { pads: [1, 1, 0, 1, 1, 1], strides: [1, 2, 1] }, { op: 'conv3d' }),
];

/** Up to eight channels, line by line. */
const lines = [
  conv('7x7 stride 2 of 3 channels', [2, 3, 37, 30], [64, 3, 7, 7], { strides: [2, 2], pads: [3, 3, 3, 3] }),
  conv('3x3 of 8 channels', [2, 8, 12, 11], [33, 8, 3, 3], { pads }),
  conv('5 channels, lines of 270', [2, 5, 9, 270], [24, 5, 3, 4], { pads: [1, 2, 1, 0], dilations: [3, 1] }),
  conv('one axis of 4 channels', [3, 4, 200], [40, 4, 8], { strides: [3] }, { op: 'conv1d' }),
  conv('three axes of 2 channels', [2, 2, 6, 7, 9], [40, 2, 3, 3, 3], { pads: [1, 1, 1, 1, 1, 1], strides: [2, 1, 2] }, { op: 'conv3d' }),
  conv('NaN in 3 channels', [2, 3, 20, 21], [48, 3, 3, 3], { pads }, { x: { fill: 'uniform', at: { 77: NaN, 2000: NaN } } }),
  conv('3 channels of any size', [2, 3, 20, 21], [48, 3, 3, 3], { pads }, { x: Array.from({ length: 997 }, (_, i) => (i % 3 ? 1 : -1) * 10 ** ((i * 7919 % 241) / 10 - 12)) }),
  conv('high, 3 channels', [2, 3, 37, 30], [64, 3, 7, 7], { strides: [2, 2], pads: [3, 3, 3, 3], precision: 'high' }, { level: 'eleven' }),
];

const ends = ['relu', 'gelu', 'clip'].map((activation) =>
  conv(activation, [2, 40, 9, 9], [70, 40, 3, 3], { pads, activation, ...(activation === 'clip' ? { activationAlpha: -1, activationBeta: 2 } : {}) }));

/** A number at some places, the rest as they are. */
const at = (positions) => ({ fill: 'uniform', at: positions });

/** Numbers from 1e-12 to 1e12 in no order. */
const any = (count) => Array.from({ length: count }, (_, i) => (i % 3 ? 1 : -1) * 10 ** ((i * 7919 % 241) / 10 - 12));

/** What the guard finds. */
const guarded = [
  conv('NaN in x', [2, 40, 9, 9], [48, 40, 3, 3], { pads }, { x: at({ 77: NaN, 4000: NaN }) }),
  conv('infinities', [2, 40, 9, 9], [48, 40, 3, 3], { pads }, { x: at({ 99: Infinity }), w: at({ 700: -Infinity }) }),
  conv('padding by a NaN weight', [2, 40, 9, 9], [48, 40, 3, 3], { pads }, { w: at({ 0: NaN }) }),
  conv('numbers of any size', [2, 40, 9, 9], [48, 40, 3, 3], { pads }, { x: any(997), w: any(1009) }),
  conv('images of any size', [4, 40, 9, 9], [48, 40, 3, 3], { pads }, { x: Array.from({ length: 4 * 3240 }, (_, i) => Math.sin(i) * 10 ** (Math.floor(i / 3240) * 8 - 16)) }),
  conv('a large number that meets a zero', [1, 40, 12, 12], [48, 40, 1, 1], {}, { x: at(Object.fromEntries(Array.from({ length: 144 }, (_, i) => [i, 1e25]))), w: at(Object.fromEntries(Array.from({ length: 48 }, (_, i) => [i * 40, 0]))) }),
  conv('sums that may overflow', [2, 40, 9, 9], [48, 40, 3, 3], { pads }, { x: { fill: 'uniform', scale: 1e19 }, w: { fill: 'uniform', scale: 1e18 } }),
  conv('large numbers by small ones', [2, 40, 9, 9], [48, 40, 3, 3], { pads }, { x: { fill: 'uniform', scale: 1e30 }, w: { fill: 'uniform', scale: 1e-30 } }),
  conv('subnormal numbers', [2, 40, 9, 9], [48, 40, 3, 3], { pads }, { x: { fill: 'uniform', scale: 1e-39 } }),
  conv('zeros beside numbers', [2, 40, 9, 9], [48, 40, 3, 3], { pads }, { x: Array.from({ length: 1999 }, (_, i) => (i % 5 ? 0 : Math.cos(i))) }),
];

/** One product a term. */
const one = ['high', 'medium'].flatMap((precision) => [
  conv(`${precision}, 64 filters`, [2, 72, 12, 11], [64, 72, 3, 3], { pads, precision }, { level: 'eleven' }),
  conv(`${precision}, 130 filters`, [2, 40, 9, 9], [130, 40, 3, 3], { pads, precision }, { level: 'eleven' }),
  conv(`${precision}, 81 pixels`, [1, 72, 9, 9], [48, 72, 3, 3], { pads, precision }, { level: 'eleven' }),
  conv(`${precision}, NaN`, [2, 40, 9, 9], [48, 40, 3, 3], { pads, precision }, { x: at({ 77: NaN }), level: 'eleven' }),
]);

/** Few pixels and long sums, on a card with several multiprocessors: clusters share a tile. */
export const shared = ['highest', 'high'].flatMap((precision) => {
  const extra = { level: precision === 'high' ? 'eleven' : undefined };
  return [
    conv(`${precision}, a tile for a cluster`, [1, 512, 7, 7], [64, 512, 3, 3], { pads, precision }, extra),
    conv(`${precision}, tiles for clusters, tails`, [1, 300, 9, 8], [70, 300, 3, 3], { pads, precision, activation: 'gelu' }, extra),
    conv(`${precision}, NaN in a shared tile`, [1, 512, 7, 7], [64, 512, 3, 3], { pads, precision }, { ...extra, x: at({ 77: NaN }) }),
  ];
});

export const convolutions = [...sizes, ...geometry, ...lines, ...ends, ...guarded, ...one];
