import { forEachCoordinate, positionIn, sizeOf } from './array.mjs';

/** Factor and size of each axis named. */
function targets(inputs, { scales, sizes, keepAspectRatioPolicy = 'stretch' }) {
  if (scales) return inputs.map((input, i) => ({ scale: scales[i], output: Math.floor(input * scales[i]) }));
  const own = sizes.map((size, i) => size / inputs[i]);
  if (keepAspectRatioPolicy === 'stretch') return own.map((scale, i) => ({ scale, output: sizes[i] }));
  const scale = keepAspectRatioPolicy === 'not_larger' ? Math.min(...own) : Math.max(...own);
  return inputs.map((input) => ({ scale, output: Math.floor(input * scale + 0.5) }));
}

/** Where output `x` of an axis lies in its input. */
const places = {
  half_pixel: (x, { scale }) => (x + 0.5) / scale - 0.5,
  half_pixel_symmetric: (x, { scale, input, output }) => (input / 2) * (1 - output / (scale * input)) + (x + 0.5) / scale - 0.5,
  pytorch_half_pixel: (x, { scale, output }) => (output > 1 ? (x + 0.5) / scale - 0.5 : 0),
  align_corners: (x, { scale, input }) => (scale * input === 1 ? 0 : (x * (input - 1)) / (scale * input - 1)),
  asymmetric: (x, { scale }) => x / scale,
  tf_crop_and_resize: (x, { scale, input, start, end }) => (scale * input === 1
    ? ((end - start) * (input - 1)) / 2
    : (x * (end - start) * (input - 1)) / (scale * input - 1)) + start * (input - 1),
};

const nearest = {
  round_prefer_floor: (place) => Math.ceil(place - 0.5),
  round_prefer_ceil: (place) => Math.floor(place + 0.5),
  floor: Math.floor,
  ceil: Math.ceil,
};

const triangle = (x) => Math.max(0, 1 - Math.abs(x));

/** The cubic convolution of Keys; its factors lose no digits where its powers would. */
const keys = (a) => (given) => {
  const x = Math.abs(given);
  if (x <= 1) return (1 - x) * (1 + x - (a + 2) * x ** 2);
  return x < 2 ? a * (x - 1) * (2 - x) ** 2 : 0;
};

/** [index, weight] of all elements that output `x` takes; undefined where it lies outside. */
function tapsOf(x, axis, options) {
  const { mode = 'nearest', coordinateTransformationMode = 'half_pixel', nearestMode = 'round_prefer_floor', cubicCoeffA = -0.75 } = options;
  const place = places[coordinateTransformationMode](x, axis);
  const last = axis.input - 1;
  if (coordinateTransformationMode === 'tf_crop_and_resize' && (place < 0 || place > last)) return undefined;
  const clamped = (index) => Math.min(Math.max(index, 0), last);
  if (mode === 'nearest') return [[clamped(nearest[nearestMode](place)), 1]];
  const [kernel, reach] = mode === 'linear' ? [triangle, 1] : [keys(cubicCoeffA), 2];
  const shrink = options.antialias ? Math.min(axis.scale, 1) : 1;
  const taps = [];
  for (let index = Math.floor(place - reach / shrink) - 1; index <= place + reach / shrink + 1; index++) {
    const weight = kernel((index - place) * shrink);
    const outside = index < 0 || index > last;
    if (weight !== 0 && !(outside && options.excludeOutside)) taps.push([clamped(index), weight]);
  }
  const total = options.antialias || options.excludeOutside ? taps.reduce((sum, [, weight]) => sum + weight, 0) : 1;
  return taps.map(([index, weight]) => [index, weight / total]);
}

/** ONNX Resize as one sum over the elements of all axes. */
export function resize([x], options) {
  const { axes = x.dims.map((_, axis) => axis), roi = [], extrapolationValue = 0 } = options;
  const named = axes.map((axis) => (axis < 0 ? axis + x.dims.length : axis));
  const dims = x.dims.slice();
  const lists = x.dims.map((dim) => Array.from({ length: dim }, (_, index) => [[index, 1]]));
  targets(named.map((axis) => x.dims[axis]), options).forEach(({ scale, output }, i) => {
    const axis = { scale, output, input: x.dims[named[i]], start: roi[i], end: roi[i + axes.length] };
    dims[named[i]] = output;
    lists[named[i]] = Array.from({ length: output }, (_, index) => tapsOf(index, axis, options));
  });
  const data = new Float64Array(sizeOf(dims));
  const bound = new Float64Array(data.length);
  let length = 1;
  forEachCoordinate(dims, (coordinate, position) => {
    const taps = coordinate.map((index, axis) => lists[axis][index]);
    if (taps.includes(undefined)) {
      data[position] = extrapolationValue;
      bound[position] = Math.abs(extrapolationValue);
      return;
    }
    const counts = taps.map((list) => list.length);
    length = Math.max(length, sizeOf(counts));
    forEachCoordinate(counts, (chosen) => {
      const picked = chosen.map((index, axis) => taps[axis][index]);
      const weight = picked.reduce((product, [, factor]) => product * factor, 1);
      const value = x.data[positionIn(x.dims, picked.map(([index]) => index))];
      data[position] += weight * value;
      bound[position] += Math.abs(weight * value);
    });
  });
  return { data, dims, bound, length };
}
