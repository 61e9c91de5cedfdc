/** @typedef {import('../cases.mjs').Case} Case */

import { bytesPerElement } from '../inputs.mjs';

/** @param {number | undefined} least @returns {import('../cases.mjs').Bar | undefined} */
const barOf = (least) => (least === undefined ? undefined : { of: 'peer', least });

/** Least speed beside cuDNN in float32 of 3x3 convolutions of 32 images, by size, and of others, weights being kept. */
const BARS = new Map([[56, 3.6], [28, 2.4], [14, 3.5], [7, 5]]);
const OTHERS = 2;

/** Least speed beside cuDNN in TF32 at precision 'high'. */
const HIGH = 1.4;

/** Least speed beside cuDNN in types of 16 bits. */
const HALVES = 0.95;

/** Least share of a copy's speed of depthwise convolutions beyond the L2 cache. */
const DEPTHWISE = /** @type {import('../cases.mjs').Bar} */ ({ of: 'limit', least: 0.9 });

/**
 * @typedef {object} Shape
 * @property {number} batch
 * @property {number} channels
 * @property {number} size       height and width
 * @property {number} outputs
 * @property {number} kernel     height and width
 * @property {number} [stride]
 * @property {number} [pad]
 * @property {number} [group]
 */

/**
 * Weights stay the same between calls and their prepared form is kept, as in a network, unless `fresh`.
 * @param {string} label @param {Shape} shape @param {Partial<Case> & { fresh?: boolean, precision?: string }} [more] @returns {Case}
 */
function convolution(label, { batch, channels, size, outputs, kernel, stride = 1, pad = kernel >> 1, group = 1 }, { fresh = false, precision, type = 'float32', ...more } = {}) {
  const out = Math.floor((size + 2 * pad - kernel) / stride) + 1;
  const taps = (channels / group) * kernel * kernel;
  const elements = batch * (channels * size * size + outputs * out * out) + outputs * taps;
  return {
    name: `${label}, batch ${batch}${type === 'float32' ? '' : `, ${type}`}${precision ? `, precision ${precision}` : ''}${fresh ? ', new weights' : ''}`,
    op: 'conv2d',
    inputs: [[batch, channels, size, size], [outputs, channels / group, kernel, kernel]],
    type,
    options: { strides: [stride, stride], pads: [pad, pad, pad, pad], group, ...(precision ? { precision } : {}) },
    constant: fresh ? undefined : 1,
    // Depthwise ones are bound by memory.
    work: { ...(group === channels ? {} : { flops: 2 * batch * outputs * out * out * taps }), bytes: bytesPerElement(type) * elements },
    ...more,
  };
}

/** The 3x3 convolution of a ResNet stage: 64 channels at 56, doubled as the side is halved. */
const resnet = (/** @type {number} */ size, /** @type {number} */ batch, /** @type {Parameters<typeof convolution>[2]} */ more = {}) => {
  const channels = 64 * Math.round(56 / size);
  return convolution(`ResNet 3x3 at ${size}`, { batch, channels, size, outputs: channels, kernel: 3 }, more);
};

/** Other layers of ResNet-50. */
const others = (/** @type {Parameters<typeof convolution>[2]} */ more) => [
  convolution('3x3 stride 2 at 56, 128 channels', { batch: 32, channels: 128, size: 56, outputs: 128, kernel: 3, stride: 2 }, more),
  convolution('ResNet 1x1 at 56', { batch: 32, channels: 64, size: 56, outputs: 256, kernel: 1 }, more),
  convolution('ResNet 1x1 at 28, 512 to 128 channels', { batch: 32, channels: 512, size: 28, outputs: 128, kernel: 1 }, more),
  convolution('ResNet 1x1 at 14, 1024 to 256 channels', { batch: 32, channels: 1024, size: 14, outputs: 256, kernel: 1 }, more),
  convolution('ResNet 7x7 stride 2', { batch: 32, channels: 3, size: 224, outputs: 64, kernel: 7, stride: 2 }, more),
];

/** Those at 112 do not fit the L2 cache. */
const depthwise = (/** @type {Parameters<typeof convolution>[2]} */ more = {}) => [
  convolution('depthwise 3x3 at 112', { batch: 32, channels: 96, size: 112, outputs: 96, kernel: 3, group: 96 }, { ...more, bar: DEPTHWISE }),
  convolution('depthwise 3x3 stride 2 at 112', { batch: 32, channels: 96, size: 112, outputs: 96, kernel: 3, stride: 2, group: 96 }, { ...more, bar: DEPTHWISE }),
  convolution('depthwise 5x5 at 28', { batch: 32, channels: 240, size: 28, outputs: 240, kernel: 5, group: 240 }, more),
];

/** @type {import('../cases.mjs').Suite} */
export default {
  name: 'conv',
  title: 'Convolutions, NCHW',
  cases: {
    cuda: [
      ...[56, 28, 14, 7].map((size) => resnet(size, 32, { bar: barOf(BARS.get(size)) })),
      ...[56, 7].map((size) => resnet(size, 32, { fresh: true })),
      ...[56, 28, 14, 7].map((size) => resnet(size, 32, { precision: 'high', bar: barOf(HIGH) })),
      ...[56, 14].map((size) => resnet(size, 1)),
      ...others({ bar: barOf(OTHERS) }),
      ...[56, 28, 14, 7].map((size) => resnet(size, 32, { type: 'float16', bar: barOf(HALVES) })),
      ...others({ type: 'float16', bar: barOf(HALVES) }),
      resnet(28, 32, { type: 'bfloat16', bar: barOf(HALVES) }),
      ...[56, 14].map((size) => resnet(size, 1, { type: 'float16' })),
      convolution('3x3 at 28, 32 groups of 8 channels', { batch: 32, channels: 256, size: 28, outputs: 256, kernel: 3, group: 32 }),
      ...depthwise(),
      ...depthwise({ type: 'float16' }),
    ],
    cpu: [
      ...[56, 28, 14, 7].map((size) => resnet(size, 1)),
      convolution('depthwise 3x3 at 56', { batch: 1, channels: 96, size: 56, outputs: 96, kernel: 3, group: 96 }),
    ],
    smoke: [
      convolution('3x3', { batch: 2, channels: 3, size: 7, outputs: 4, kernel: 3 }),
      convolution('depthwise 3x3', { batch: 1, channels: 4, size: 6, outputs: 4, kernel: 3, stride: 2, group: 4 }),
    ],
  },
};
