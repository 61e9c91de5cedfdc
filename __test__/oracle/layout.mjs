import { formats } from '../helpers/types.mjs';
import { forEachCoordinate, positionIn, sizeOf } from './array.mjs';

/** An array of shape `dims` whose element at each coordinate is what `pick` gives. */
function made(dims, pick) {
  const data = new Float64Array(sizeOf(dims));
  forEachCoordinate(dims, (place, position) => { data[position] = pick(place); });
  return { data, dims };
}

const at = (x, place) => x.data[place.reduce((position, index, axis) => position * x.dims[axis] + index, 0)];
const axisOf = (axis, { dims }) => (axis < 0 ? axis + dims.length : axis);

/** Place with the index along one axis replaced. */
const withIndex = (place, axis, index) => place.map((value, other) => (other === axis ? index : value));

export function transpose([x], { perm = x.dims.map((_, axis) => x.dims.length - 1 - axis) } = {}) {
  const axes = perm.map((axis) => axisOf(axis, x));
  return made(axes.map((axis) => x.dims[axis]), (place) => {
    const from = [];
    axes.forEach((axis, index) => { from[axis] = place[index]; });
    return at(x, from);
  });
}

/** The indices of an axis that a slice takes, one after the other. As in ONNX, and unlike Python, a start before the axis is moved to its first element when going backwards. */
function indicesOf(dim, start, end, step) {
  const whole = (index) => (index < 0 ? index + dim : index);
  const indices = [];
  let [from, to] = [whole(start), whole(end)];
  if (step > 0) {
    [from, to] = [Math.max(from, 0), Math.min(to, dim)];
    for (let i = from; i < to; i += step) indices.push(i);
  } else {
    [from, to] = [Math.min(Math.max(from, 0), dim - 1), Math.max(to, -1)];
    for (let i = from; i > to; i += step) indices.push(i);
  }
  return indices;
}

export function slice([x], { starts, ends, axes = starts.map((_, index) => index), steps = starts.map(() => 1) }) {
  const taken = x.dims.map((dim) => Array.from({ length: dim }, (_, index) => index));
  axes.forEach((given, index) => {
    const axis = axisOf(given, x);
    taken[axis] = indicesOf(x.dims[axis], starts[index], ends[index], steps[index]);
  });
  return made(taken.map((indices) => indices.length), (place) => at(x, place.map((index, axis) => taken[axis][index])));
}

export function split([x], { axis = 0, split: sizes, numOutputs }) {
  const along = axisOf(axis, x);
  const dim = x.dims[along];
  const size = Math.ceil(dim / numOutputs);
  const parts = sizes ?? Array.from({ length: numOutputs }, (_, index) => (index < numOutputs - 1 ? size : dim - index * size));
  let start = 0;
  return parts.map((length) => {
    const first = start;
    start += length;
    return made(withIndex(x.dims, along, length), (place) => at(x, withIndex(place, along, place[along] + first)));
  });
}

export function concat(inputs, { axis }) {
  const along = axisOf(axis, inputs[0]);
  const total = inputs.reduce((sum, { dims }) => sum + dims[along], 0);
  return made(withIndex(inputs[0].dims, along, total), (place) => {
    let index = place[along];
    const x = inputs.find(({ dims }) => {
      if (index < dims[along]) return true;
      index -= dims[along];
      return false;
    });
    return at(x, withIndex(place, along, index));
  });
}

/** The index that a padded one stands for, by walking there step by step; undefined where it is the constant. */
function padded(index, dim, mode) {
  if (index >= 0 && index < dim) return index;
  if (mode === 'edge') return index < 0 ? 0 : dim - 1;
  if (mode === 'wrap') return ((index % dim) + dim) % dim;
  if (mode === 'reflect') return index < 0 ? -index : 2 * (dim - 1) - index;
  return undefined;
}

export function pad([x], { pads, axes = x.dims.map((_, axis) => axis), mode = 'constant', value = 0 }) {
  const before = x.dims.map(() => 0);
  const dims = x.dims.slice();
  axes.forEach((given, index) => {
    const axis = axisOf(given, x);
    before[axis] = pads[index];
    dims[axis] += pads[index] + pads[index + axes.length];
  });
  return made(dims, (place) => {
    const from = place.map((index, axis) => padded(index - before[axis], x.dims[axis], mode));
    return from.includes(undefined) ? value : at(x, from);
  });
}

/** An index from the end counted from the start. */
const pickedIndex = (index, dim) => (index < 0 ? index + dim : index);

export function gather([x, indices], { axis = 0 } = {}) {
  const along = axisOf(axis, x);
  const dims = [...x.dims.slice(0, along), ...indices.dims, ...x.dims.slice(along + 1)];
  return made(dims, (place) => {
    const middle = place.slice(along, along + indices.dims.length);
    const index = pickedIndex(indices.data[positionIn(indices.dims, middle)], x.dims[along]);
    return at(x, [...place.slice(0, along), index, ...place.slice(along + indices.dims.length)]);
  });
}

export function gatherElements([x, indices], { axis = 0 } = {}) {
  const along = axisOf(axis, x);
  return made(indices.dims, (place) => {
    const index = pickedIndex(at(indices, place), x.dims[along]);
    return at(x, withIndex(place, along, index));
  });
}

const joins = { none: (a, b) => b, add: (a, b) => a + b, mul: (a, b) => a * b, max: Math.max, min: Math.min };

/** Updates that meet are joined in order, each result rounded to the type. */
export function scatterElements([x, indices, updates], { axis = 0, reduction = 'none' } = {}) {
  const along = axisOf(axis, x);
  const data = Float64Array.from(x.data);
  const truth = { add: 'max', mul: 'min' };
  const join = joins[(x.dtype === 'bool' && truth[reduction]) || reduction];
  forEachCoordinate(indices.dims, (place, position) => {
    const index = pickedIndex(indices.data[position], x.dims[along]);
    const at = positionIn(x.dims, withIndex(place, along, index));
    data[at] = reduction === 'none' ? updates.data[position] : formats[x.dtype].round(join(data[at], updates.data[position]));
  });
  return { data, dims: x.dims };
}

/** Elements along axes of one element again and again, new axes in front. */
export function expand([x], { shape }) {
  const rank = Math.max(x.dims.length, shape.length);
  const own = [...Array(rank - x.dims.length).fill(1), ...x.dims];
  const wanted = [...Array(rank - shape.length).fill(1), ...shape];
  const dims = own.map((dim, axis) => (dim === 1 ? wanted[axis] : dim));
  return made(dims, (place) => at(x, place.map((index, axis) => (own[axis] === 1 ? 0 : index)).slice(rank - x.dims.length)));
}

/** The whole again and again along each axis. */
export function tile([x], { repeats }) {
  return made(x.dims.map((dim, axis) => dim * repeats[axis]), (place) => at(x, place.map((index, axis) => index % x.dims[axis])));
}
