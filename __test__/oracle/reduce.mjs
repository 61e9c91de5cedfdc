import { forEachCoordinate, positionIn, sizeOf } from './array.mjs';
import { formats } from '../helpers/types.mjs';
import { Sum, twoProduct } from './sum.mjs';

/** Folds the values of one element: { value, size } with the magnitudes behind it. */
const folds = {
  sum(values) {
    const sum = new Sum();
    for (const value of values) sum.add(value);
    return { value: sum.value, size: sum.size };
  },
  mean(values) {
    const { value, size } = folds.sum(values);
    return { value: value / values.length, size: size / values.length };
  },
  product(values) {
    // A product that carries its rounding errors along, relative to itself.
    let [value, lost] = [1, 0];
    for (const factor of values) {
      const [product, error] = twoProduct(value, factor);
      lost = lost * factor + error;
      value = product;
    }
    const exact = Number.isFinite(lost) ? value + lost : value;
    // Every factor adds its rounding: a share of the result, where a sum's share shrinks with each term.
    return { value: exact, size: Math.abs(exact) * Math.max(1, values.length / 16) };
  },
  squares(values) {
    const sum = new Sum();
    for (const value of values) sum.addProduct(value, value);
    return { value: sum.value, size: sum.size };
  },
  max: (values) => ({ value: values.reduce((a, b) => Math.max(a, b), -Infinity), size: 0 }),
  min: (values) => ({ value: values.reduce((a, b) => Math.min(a, b), Infinity), size: 0 }),
};

/** `finish` makes a whole number of what whole numbers give. */
function reduce(fold, finish = (value) => value) {
  return ([x], { axes = [], keepDims = true } = {}) => {
    const rank = x.dims.length;
    const chosen = new Set(axes.length > 0 ? axes.map((axis) => (axis < 0 ? axis + rank : axis)) : x.dims.keys());
    const kept = x.dims.map((dim, axis) => (chosen.has(axis) ? 1 : dim));
    const groups = Array.from({ length: sizeOf(kept) }, () => []);
    forEachCoordinate(x.dims, (place, position) => groups[positionIn(kept, place)].push(x.data[position]));
    const whole = formats[x.dtype]?.unit === 0;
    const folded = groups.map(fold).map((all) => (whole ? { value: finish(all.value), size: 0 } : all));
    return {
      data: Float64Array.from(folded, ({ value }) => value),
      bound: Float64Array.from(folded, ({ size }) => size),
      dims: keepDims ? kept : x.dims.filter((_, axis) => !chosen.has(axis)),
      length: Math.max(1, ...groups.map((group) => group.length)),
    };
  };
}

const after = (fold, change) => (values) => {
  const { value, size } = fold(values);
  return change(value, size);
};

export const reductions = {
  reduceSum: reduce(folds.sum),
  reduceMean: reduce(folds.mean, (value) => Math.trunc(value) || 0),
  reduceMax: reduce(folds.max),
  reduceMin: reduce(folds.min),
  reduceProd: reduce(folds.product),
  reduceL1: reduce((values) => folds.sum(values.map(Math.abs))),
  reduceL2: reduce(after(folds.squares, (value) => ({ value: Math.sqrt(value), size: Math.sqrt(value) })), Math.trunc),
  reduceSumSquare: reduce(folds.squares),
  reduceLogSumExp: reduce((values) => {
    const { value: most } = folds.max(values);
    const sum = folds.sum(values.map((value) => Math.exp(value - (Math.abs(most) === Infinity ? 0 : most)))).value;
    const value = (Math.abs(most) === Infinity ? 0 : most) + Math.log(sum);
    return { value, size: 2 + Math.abs(most) + Math.abs(Math.log(sum)) };
  }),
  // A logarithm takes the relative error of its argument.
  reduceLogSum: reduce(after(folds.sum, (value, size) => ({ value: Math.log(value), size: 1 + size / Math.abs(value) + Math.abs(Math.log(value)) }))),
};


/** Whether `next`, which comes later, takes the place of `best`; NaN is beyond every number. */
function replaces(next, best, smallest, last) {
  if (Number.isNaN(next) || Number.isNaN(best)) return Number.isNaN(next) && (last || !Number.isNaN(best));
  if (next === best) return last;
  return smallest ? next < best : next > best;
}

const indexOf = (smallest) => ([x], { axis = 0, keepDims = true, selectLastIndex = false } = {}) => {
  const along = axis < 0 ? axis + x.dims.length : axis;
  const kept = x.dims.map((dim, at) => (at === along ? 1 : dim));
  const groups = Array.from({ length: sizeOf(kept) }, () => []);
  forEachCoordinate(x.dims, (place, position) => groups[positionIn(kept, place)].push(x.data[position]));
  const data = Float64Array.from(groups, (values) =>
    values.reduce((best, value, at) => (at > 0 && replaces(value, values[best], smallest, selectLastIndex) ? at : best), 0));
  return { data, dims: keepDims ? kept : kept.filter((_, at) => at !== along) };
};

export const indexReductions = { argMax: indexOf(false), argMin: indexOf(true) };
