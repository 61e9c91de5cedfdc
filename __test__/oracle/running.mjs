import { forEachCoordinate, positionIn, sizeOf } from './array.mjs';

/** Places of an axis' lines in x, each in the order of the axis, and the place in the result that each rank of them has. */
function lines(dims, axis, count) {
  const along = dims.length === 0 ? 0 : axis < 0 ? axis + dims.length : axis;
  const length = dims[along] ?? 1;
  const kept = dims.map((dim, at) => (at === along ? 1 : dim));
  const target = dims.map((dim, at) => (at === along ? count : dim));
  const all = [];
  forEachCoordinate(kept, (place) => {
    const at = (into, index) => positionIn(into, place.map((p, axisAt) => (axisAt === along ? index : p)));
    all.push({ from: Array.from({ length }, (_, i) => at(dims, i)), to: Array.from({ length: count }, (_, i) => at(target, i)) });
  });
  return { all, target };
}

const running = (start, fold, bound) => ([x], { axis = 0, exclusive = false, reverse = false } = {}) => {
  const length = x.dims.length === 0 ? 1 : x.dims.at(axis);
  const [data, bounds] = [new Float64Array(x.data.length), new Float64Array(x.data.length)];
  for (const { from } of lines(x.dims, axis, length).all) {
    let [total, size] = [start, 0];
    (reverse ? from.toReversed?.() ?? [...from].reverse() : from).forEach((place, count) => {
      const before = [total, size];
      [total, size] = [fold(total, x.data[place]), bound(total, size, x.data[place], count)];
      [data[place], bounds[place]] = exclusive ? before : [total, size];
    });
  }
  return { data, bound: bounds, dims: x.dims, length };
};

export const cumSum = running(0, (a, b) => a + b, (total, size, x) => size + Math.abs(x));
export const cumProd = running(1, (a, b) => a * b, (total, size, x, count) => Math.abs(total * x) * Math.max(1, count / 8));

export function topK([x], { k, axis = -1, largest = true }) {
  const { all, target } = lines(x.dims, axis, k);
  const [values, indices] = [new Float64Array(sizeOf(target)), new Float64Array(sizeOf(target))];
  for (const { from, to } of all) {
    const key = (i) => x.data[from[i]];
    const order = (a, b) => {
      if (Number.isNaN(key(a)) || Number.isNaN(key(b))) return Number.isNaN(key(b)) - Number.isNaN(key(a)) || a - b;
      if (key(a) === key(b)) return a - b;
      return key(a) > key(b) === largest ? -1 : 1;
    };
    [...from.keys()].sort(order).slice(0, k).forEach((index, rank) => {
      [values[to[rank]], indices[to[rank]]] = [key(index), index];
    });
  }
  return [{ data: values, dims: target }, { data: indices, dims: target }];
}
