import { sizeOf } from './array.mjs';
import { Sum } from './sum.mjs';

/** Calls `visit` with the positions of every line along `axis`. */
function forEachLine(dims, axis, visit) {
  const at = axis < 0 ? axis + dims.length : axis;
  const length = dims[at] ?? 1;
  const inner = sizeOf(dims.slice(at + 1));
  const outer = sizeOf(dims.slice(0, at));
  for (let o = 0; o < outer; o++) {
    for (let i = 0; i < inner; i++) {
      visit(Array.from({ length }, (_, j) => (o * length + j) * inner + i));
    }
  }
  return length;
}

function sumOf(values) {
  const sum = new Sum();
  for (const value of values) sum.add(value);
  return sum.value;
}

const maxOf = (values) => values.reduce((a, b) => Math.max(a, b), -Infinity);

export function softmax([x], { axis = -1 } = {}) {
  const data = new Float64Array(sizeOf(x.dims));
  const bound = new Float64Array(data.length);
  const length = forEachLine(x.dims, axis, (line) => {
    const max = maxOf(line.map((p) => x.data[p]));
    const terms = line.map((p) => Math.exp(x.data[p] - max));
    const total = sumOf(terms);
    line.forEach((p, j) => {
      data[p] = terms[j] / total;
      bound[p] = data[p] === 0 ? 0 : data[p] * (1 + Math.abs(x.data[p] - max));
    });
  });
  return { data, bound, dims: x.dims, length };
}

export function logSoftmax([x], { axis = -1 } = {}) {
  const data = new Float64Array(sizeOf(x.dims));
  const bound = new Float64Array(data.length);
  const length = forEachLine(x.dims, axis, (line) => {
    const max = maxOf(line.map((p) => x.data[p]));
    const logTotal = Math.log(sumOf(line.map((p) => Math.exp(x.data[p] - max))));
    for (const p of line) {
      data[p] = x.data[p] - max - logTotal;
      bound[p] = 1 + Math.abs(x.data[p]) + Math.abs(max) + Math.abs(logTotal);
    }
  });
  return { data, bound, dims: x.dims, length };
}

/** Normalises over all dimensions from `axis` on; scale and bias have the shape of those dimensions. */
export function layerNorm([x], { axis = -1, epsilon = 1e-5, scale, bias } = {}) {
  const at = axis < 0 ? axis + x.dims.length : axis;
  const length = sizeOf(x.dims.slice(at));
  const rows = sizeOf(x.dims.slice(0, at));
  const data = new Float64Array(rows * length);
  const bound = new Float64Array(data.length);
  for (let r = 0; r < rows; r++) {
    const row = Array.from({ length }, (_, j) => x.data[r * length + j]);
    const mean = sumOf(row) / length;
    const deviation = Math.sqrt(sumOf(row.map((v) => (v - mean) ** 2)) / length + epsilon);
    const size = maxOf(row.map(Math.abs));
    row.forEach((v, j) => {
      const normal = (v - mean) / deviation;
      const gain = scale ? scale.data[j] : 1;
      const shift = bias ? bias.data[j] : 0;
      data[r * length + j] = normal * gain + shift;
      bound[r * length + j] = (size / deviation) * (1 + Math.abs(normal)) * Math.abs(gain) + Math.abs(shift);
    });
  }
  return { data, bound, dims: x.dims, length };
}

/** Over the root of the mean square over all dimensions from `axis` on, whose shape scale has. */
export function rmsNorm([x], { axis = -1, epsilon = 1e-5, scale } = {}) {
  const at = axis < 0 ? axis + x.dims.length : axis;
  const length = sizeOf(x.dims.slice(at));
  const rows = sizeOf(x.dims.slice(0, at));
  const data = new Float64Array(rows * length);
  for (let r = 0; r < rows; r++) {
    const row = Array.from({ length }, (_, j) => x.data[r * length + j]);
    const root = Math.sqrt(sumOf(row.map((v) => v * v)) / length + epsilon);
    row.forEach((v, j) => { data[r * length + j] = (v / root) * (scale ? scale.data[j] : 1); });
  }
  return { data, bound: data.map(Math.abs), dims: x.dims, length };
}

/** Over groups of channels of [N, C, ...]; scale and bias have one number a channel. */
export function groupNorm([x], { numGroups, epsilon = 1e-5, scale, bias }) {
  const [images, channels] = x.dims;
  const plane = sizeOf(x.dims.slice(2));
  const grouped = { data: x.data, dims: [images * numGroups, (channels / numGroups) * plane] };
  const { data, bound, length } = layerNorm([grouped], { axis: 1, epsilon });
  for (let p = 0; p < data.length; p++) {
    const channel = Math.floor(p / plane) % channels;
    const gain = scale ? scale.data[channel] : 1;
    const shift = bias ? bias.data[channel] : 0;
    data[p] = data[p] * gain + shift;
    bound[p] = bound[p] * Math.abs(gain) + Math.abs(shift);
  }
  return { data, bound, dims: x.dims, length };
}

/** Inference form: x [N, C, ...] with one scale, bias, mean and variance a channel. */
export function batchNorm([x, scale, bias, mean, variance], { epsilon = 1e-5 } = {}) {
  const channels = x.dims[1] ?? 1;
  const inner = sizeOf(x.dims.slice(2));
  const data = new Float64Array(sizeOf(x.dims));
  const bound = new Float64Array(data.length);
  for (let p = 0; p < data.length; p++) {
    const c = Math.floor(p / inner) % channels;
    const factor = scale.data[c] / Math.sqrt(variance.data[c] + epsilon);
    data[p] = (x.data[p] - mean.data[c]) * factor + bias.data[c];
    bound[p] = (Math.abs(x.data[p]) + Math.abs(mean.data[c])) * Math.abs(factor) + Math.abs(bias.data[c]);
  }
  return { data, bound, dims: x.dims, length: 1 };
}
