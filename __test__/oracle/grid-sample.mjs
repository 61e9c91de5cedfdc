import { coordinateOf, forEachCoordinate, sizeOf } from './array.mjs';

const mirror = (place, low, high) => {
  if (high <= low) return low;
  const [range, beyond] = [high - low, place < low ? low - place : place - high];
  const times = Math.floor(beyond / range);
  const rest = beyond - times * range;
  return (place < low) === (times % 2 === 0) ? low + rest : high - rest;
};
const clamp = (x, low, high) => Math.min(Math.max(x, low), high);
const even = (x) => (Math.abs(x % 1) === 0.5 ? 2 * Math.round(x / 2) : Math.round(x));

/** Elements along an axis of that size, null for zeros, with their weights. */
function tapsOf(named, size, { mode = 'linear', paddingMode = 'zeros', alignCorners = false }) {
  const [low, high] = alignCorners ? [0, size - 1] : [-0.5, size - 0.5];
  let place = alignCorners ? ((named + 1) / 2) * (size - 1) : ((named + 1) * size - 1) / 2;
  place = place > -1e15 ? Math.min(place, 1e15) : -1e15;
  if (mode === 'nearest') place = even(place);
  if (place < low || place > high) {
    if (paddingMode === 'border') place = clamp(place, 0, size - 1);
    if (paddingMode === 'reflection') place = mirror(place, low, high);
  }
  const first = Math.floor(place);
  const rest = place - first;
  const taps = {
    nearest: () => [[even(place), 1]],
    linear: () => [[first, 1 - rest], [first + 1, rest]],
    cubic: () => {
      const left = 1 - rest;
      return [
        [first - 1, -0.75 * rest * left * left], [first, left * (1 + rest - 1.25 * rest * rest)],
        [first + 1, rest * (1 + left - 1.25 * left * left)], [first + 2, -0.75 * left * rest * rest],
      ];
    },
  }[mode]();
  return taps.map(([at, weight]) => {
    const outside = at < 0 || at > size - 1;
    if (paddingMode === 'zeros' && outside) return [null, weight];
    const inside = paddingMode === 'reflection' && (at < low || at > high) ? mirror(at, low, high) : at;
    return [Math.trunc(clamp(inside, 0, size - 1)), weight];
  });
}

export function gridSample([x, grid], options = {}) {
  const axes = x.dims.length - 2;
  const sizes = x.dims.slice(2);
  const dims = [x.dims[0], x.dims[1], ...grid.dims.slice(1, -1)];
  const points = sizeOf(grid.dims.slice(1, -1));
  const [data, bound] = [new Float64Array(sizeOf(dims)), new Float64Array(sizeOf(dims))];
  for (let position = 0; position < data.length; position++) {
    const [image, channel, point] = coordinateOf(position, [x.dims[0], x.dims[1], points]);
    const named = (axis) => grid.data[(image * points + point) * axes + axes - 1 - axis];
    const taps = sizes.map((size, axis) => tapsOf(named(axis), size, options));
    forEachCoordinate(taps.map((list) => list.length), (tap) => {
      const chosen = tap.map((index, axis) => taps[axis][index]);
      if (chosen.some(([at]) => at === null)) return;
      const at = chosen.reduce((total, [index], axis) => total * sizes[axis] + index, 0);
      const term = chosen.reduce((all, [, weight]) => all * weight, 1) * x.data[(image * x.dims[1] + channel) * sizeOf(sizes) + at];
      data[position] += term;
      bound[position] += Math.abs(term);
    });
  }
  return { data, bound, dims, length: 16 };
}
