import { formats } from '../helpers/types.mjs';
import { coordinateOf, forEachCoordinate, sizeOf } from './array.mjs';
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

/** Maxima and where they stand: the first of equal ones, the first NaN before all numbers. */
export function maxPoolWithIndices([x], options) {
  const area = sizeOf(x.dims.slice(2));
  const places = pool({ dims: x.dims, data: Float64Array.from(x.data, (_, i) => i) }, options, (all) => {
    const value = (i) => x.data[i];
    const better = (a, b) => value(a) > value(b) || (Number.isNaN(value(a)) && !Number.isNaN(value(b)));
    return [all.length === 0 ? -1 : all.reduce((best, i) => (better(i, best) ? i : best)), 0];
  });
  const least = formats[x.dtype].unit > 0 ? -Infinity : x.dtype === 'int8' ? -128 : 0;
  const turned = (place) => {
    const at = coordinateOf(place % area, x.dims.slice(2));
    return Math.floor(place / area) * area + at.reduceRight((total, index, axis) => total * x.dims[axis + 2] + index, 0);
  };
  const indices = options.storageOrder && area > 0 ? places.data.map((place) => (place < 0 ? -1 : turned(place))) : places.data;
  return [
    { dims: places.dims, data: places.data.map((place) => (place < 0 ? least : x.data[place])) },
    { dims: places.dims, data: indices },
  ];
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
