import { forEachCoordinate, sizeOf } from './array.mjs';
import { activate } from './elementwise.mjs';
import { Sum } from './sum.mjs';

/**
 * Window geometry of ONNX for any number of spatial dimensions.
 * @returns {{ strides: number[], dilations: number[], begin: number[], end: number[] }}
 */
export function geometry(input, kernel, options) {
  const rank = input.length;
  const strides = options.strides ?? Array.from({ length: rank }, () => 1);
  const dilations = options.dilations ?? Array.from({ length: rank }, () => 1);
  const pads = options.pads ?? Array.from({ length: 2 * rank }, () => 0);
  let begin = pads.slice(0, rank);
  let end = pads.slice(rank);
  const autoPad = options.autoPad ?? 'NOTSET';
  if (autoPad === 'VALID') {
    begin = Array.from({ length: rank }, () => 0);
    end = begin;
  } else if (autoPad !== 'NOTSET') {
    const totals = input.map((size, i) => {
      const out = Math.ceil(size / strides[i]);
      return Math.max(0, (out - 1) * strides[i] + (kernel[i] - 1) * dilations[i] + 1 - size);
    });
    [begin, end] = splitPads(totals, autoPad === 'SAME_UPPER');
  }
  return { strides, dilations, begin, end };
}

/** The odd element goes to the end for upper and to the start otherwise. */
function splitPads(totals, upper) {
  const small = totals.map((total) => Math.floor(total / 2));
  const large = totals.map((total, i) => total - small[i]);
  return upper ? [small, large] : [large, small];
}

/** Convolution over any number of spatial dimensions: x [N, C, ...], w [M, C / group, ...]. */
export function conv([x, w], options = {}) {
  const { group = 1, bias } = options;
  const [batch, channels, ...input] = x.dims;
  const [filters, perGroup, ...kernel] = w.dims;
  const { strides, dilations, begin, end } = geometry(input, kernel, options);
  const output = input.map((size, i) =>
    Math.floor((size + begin[i] + end[i] - ((kernel[i] - 1) * dilations[i] + 1)) / strides[i]) + 1);
  const dims = [batch, filters, ...output];
  const data = new Float64Array(sizeOf(dims));
  const bound = new Float64Array(data.length);
  const taps = sizeOf(kernel);
  const area = sizeOf(input);
  forEachCoordinate(dims, ([n, f, ...place], position) => {
    const sum = new Sum();
    const firstChannel = Math.floor(f / (filters / group)) * perGroup;
    forEachCoordinate(kernel, (tap, t) => {
      const offset = inputOffset(input, place, tap, strides, dilations, begin);
      for (let c = 0; c < perGroup; c++) {
        const value = offset < 0 ? 0 : x.data[(n * channels + firstChannel + c) * area + offset];
        sum.addProduct(value, w.data[(f * perGroup + c) * taps + t]);
      }
    });
    if (bias) sum.add(bias.data[f]);
    data[position] = activate(options, sum.value);
    bound[position] = 1.2 * sum.size + Math.abs(data[position]);
  });
  return { data, bound, dims, length: taps * perGroup };
}

/** Row-major offset of a tap in the input, -1 in the padding. */
function inputOffset(input, place, tap, strides, dilations, begin) {
  let offset = 0;
  for (let i = 0; i < input.length; i++) {
    const at = place[i] * strides[i] + tap[i] * dilations[i] - begin[i];
    if (at < 0 || at >= input[i]) return -1;
    offset = offset * input[i] + at;
  }
  return offset;
}

/** Transposed convolution: x [N, C, ...], w [C, M / group, ...]; every input element is scattered through the kernel. */
export function convTranspose([x, w], options = {}) {
  const { group = 1, bias } = options;
  const [batch, channels, ...input] = x.dims;
  const [, perGroup, ...kernel] = w.dims;
  const shape = transposedGeometry(input, kernel, options);
  const dims = [batch, perGroup * group, ...shape.output];
  const sums = Array.from({ length: sizeOf(dims) }, () => new Sum());
  const area = sizeOf(shape.output);
  const groupChannels = channels / group;
  forEachCoordinate(x.dims, ([n, c, ...place], position) => {
    forEachCoordinate(kernel, (tap, t) => {
      const at = place.map((p, i) => p * shape.strides[i] + tap[i] * shape.dilations[i] - shape.begin[i]);
      if (at.some((v, i) => v < 0 || v >= shape.output[i])) return;
      const offset = at.reduce((total, v, i) => total * shape.output[i] + v, 0);
      for (let f = 0; f < perGroup; f++) {
        const filter = Math.floor(c / groupChannels) * perGroup + f;
        const weight = w.data[(c * perGroup + f) * sizeOf(kernel) + t];
        sums[(n * dims[1] + filter) * area + offset].addProduct(x.data[position], weight);
      }
    });
  });
  if (bias) sums.forEach((sum, i) => sum.add(bias.data[Math.floor(i / area) % dims[1]]));
  const data = Float64Array.from(sums, (sum) => activate(options, sum.value));
  const bound = Float64Array.from(sums, (sum, i) => 1.2 * sum.size + Math.abs(data[i]));
  return { data, bound, dims, length: groupChannels * sizeOf(kernel) };
}

function transposedGeometry(input, kernel, options) {
  const rank = input.length;
  const strides = options.strides ?? Array.from({ length: rank }, () => 1);
  const dilations = options.dilations ?? Array.from({ length: rank }, () => 1);
  const outputPads = options.outputPads ?? Array.from({ length: rank }, () => 0);
  const autoPad = options.autoPad ?? 'NOTSET';
  const full = input.map((size, i) =>
    strides[i] * (size - 1) + outputPads[i] + (kernel[i] - 1) * dilations[i] + 1);
  const same = autoPad.startsWith('SAME') ? input.map((size, i) => size * strides[i]) : undefined;
  const output = options.outputShape ?? same;
  if (!output) {
    const pads = autoPad === 'VALID' ? [] : options.pads ?? [];
    const begin = full.map((_, i) => pads[i] ?? 0);
    return { strides, dilations, begin, output: full.map((size, i) => size - begin[i] - (pads[i + rank] ?? 0)) };
  }
  const totals = full.map((size, i) => Math.max(0, size - output[i]));
  const [begin] = splitPads(totals, autoPad === 'SAME_UPPER');
  return { strides, dilations, begin, output };
}
