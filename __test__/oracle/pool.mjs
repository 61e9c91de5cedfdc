import { forEachCoordinate, sizeOf } from './array.mjs';
import { geometry } from './conv.mjs';
import { Sum } from './sum.mjs';

/** Output sizes; in ceil mode a window that would start in the trailing padding is dropped. */
function outputDims(input, options, { strides, dilations, begin, end }) {
  return input.map((size, i) => {
    const span = size + begin[i] + end[i] - ((options.kernel[i] - 1) * dilations[i] + 1);
    if (!options.ceilMode) return Math.floor(span / strides[i]) + 1;
    const count = Math.ceil(span / strides[i]) + 1;
    return (count - 1) * strides[i] >= size + begin[i] ? count - 1 : count;
  });
}

/** Calls `reduce` with the values inside each window and the number of its cells that lie in the padded input. */
function pool(x, options, reduce) {
  const [batch, channels, ...input] = x.dims;
  const shape = geometry(input, options.kernel, options);
  const dims = [batch, channels, ...outputDims(input, options, shape)];
  const area = sizeOf(input);
  const data = new Float64Array(sizeOf(dims));
  const bound = new Float64Array(data.length);
  forEachCoordinate(dims, ([n, c, ...place], position) => {
    const values = [];
    let cells = 0;
    forEachCoordinate(options.kernel, (tap) => {
      const at = place.map((p, i) => p * shape.strides[i] + tap[i] * shape.dilations[i] - shape.begin[i]);
      if (at.every((v, i) => v < input[i] + shape.end[i])) cells++;
      if (at.some((v, i) => v < 0 || v >= input[i])) return;
      values.push(x.data[(n * channels + c) * area + at.reduce((total, v, i) => total * input[i] + v, 0)]);
    });
    [data[position], bound[position]] = reduce(values, cells);
  });
  return { data, bound, dims, length: sizeOf(options.kernel) };
}

const largest = (values) => [values.reduce((a, b) => Math.max(a, b), -Infinity), 0];

function average(values, cells) {
  const sum = new Sum();
  for (const value of values) sum.add(value);
  return [sum.value / cells, sum.size / cells];
}

export function maxPool([x], options) {
  return pool(x, options, largest);
}

export function averagePool([x], options) {
  return pool(x, options, (values, cells) => average(values, options.countIncludePad ? cells : values.length));
}

export function globalMaxPool([x]) {
  return pool(x, { kernel: x.dims.slice(2) }, largest);
}

export function globalAveragePool([x]) {
  if (sizeOf(x.dims.slice(2)) > 0) return pool(x, { kernel: x.dims.slice(2) }, average);
  const dims = [x.dims[0], x.dims[1], ...x.dims.slice(2).map(() => 1)];
  return { data: new Float64Array(sizeOf(dims)).fill(NaN), bound: new Float64Array(sizeOf(dims)), dims, length: 1 };
}
