import { coordinateOf } from '../oracle/array.mjs';
import { exponentOf, formats } from './types.mjs';

/** Distance between neighbouring numbers of the type at `value`. */
export function ulp(value, dtype) {
  const { fraction, minExponent } = formats[dtype];
  const exponent = value === 0 ? minExponent : exponentOf(value);
  return 2 ** Math.max(Math.max(exponent, minExponent) - fraction, -1074);
}

/**
 * The error that a level allows at one element, as a function of the expected number in float64, the type,
 * the magnitudes summed into it (`bound`) and their count (`length`).
 *
 * exact       no error; zeros of either sign and all NaNs are equal.
 * rounded     the correctly rounded number: half a unit in the last place.
 * function    8 units: the widest of the device's own functions takes 4 (powf) and a composite of two doubles it.
 *             `bound` holds the terms of sums inside the function, which may each be off by as much.
 * accumulate  2^-20 of the magnitudes for float32 (16 units of 2^-24), fewer for short sums; 4 more for scaling,
 *             bias and activation. In float64 the same number of units.
 * eleven      as accumulate, both factors of each product being rounded to eleven bits first (precision 'high').
 * normalized  as accumulate: the row's sums, the exponential or root and the scaling stand behind each element.
 *
 * Types of 16 bits are computed with in float32 and rounded once: half a unit of theirs beside what float32 is allowed.
 * Functions of 16 bits may be off by an eighth of a unit before that (kernels/common/math_half.cuh).
 * Tensor cores cut the sum off after every 16 terms: 2^-22 of the magnitudes each time is more than was ever seen.
 */
export const levels = {
  exact: () => 0,
  rounded: (want, dtype) => 0.5 * ulp(want, dtype),
  function: (want, dtype, bound) => 8 * ulp(want, dtype) + 8 * formats[dtype].unit * bound,
  accumulate: sumLevel,
  eleven: (want, dtype, bound, length) => 2 ** -10 * bound + sumLevel(want, dtype, bound, length),
  normalized: sumLevel,
};

function allowed(level, want, dtype, bound, length) {
  if (level === 'exact' || !formats[dtype].bits) return levels[level](want, dtype, bound, length);
  const cut = level === 'accumulate' ? Math.ceil(length / 16) * 2 ** -22 * bound : 0;
  const graded = level === 'function' ? 0.125 * ulp(want, dtype) : 0;
  return 0.5 * ulp(want, dtype) + graded + cut + levels[level](want, 'float32', bound, length);
}

function sumLevel(want, dtype, bound, length) {
  return ulp(want, dtype) + (Math.min(length, 16) + 4) * formats[dtype].unit * bound;
}

function classOf(value) {
  if (Number.isNaN(value)) return 'NaN';
  return Number.isFinite(value) ? 'finite' : String(value);
}

/** Whether `got` may stand for the float64 number `want`. */
function accepts(level, got, want, dtype, bound, length) {
  const rounded = formats[dtype].round(want);
  if (classOf(rounded) !== classOf(got)) {
    // A number within the tolerance of the largest may come out as infinity, and the other way round.
    const edge = level !== 'exact' && level !== 'rounded' && !Number.isNaN(got) && !Number.isNaN(want);
    const { max, bits } = formats[dtype];
    return edge && Math.abs(Math.abs(want) - max) <= (bits ? 1 : 16) * ulp(max, dtype)
      && Math.sign(got) === Math.sign(want);
  }
  if (Object.is(rounded, got) || rounded === got || !Number.isFinite(got)) return true;
  if (level === 'exact') return false;
  return Math.abs(got - want) <= allowed(level, want, dtype, bound, length);
}

/**
 * Compares a result with the oracle's. Returns one line per wrong element, at most `most` of them and a count.
 * @param {string} level
 * @param {ArrayLike<number>} got
 * @param {{ data: ArrayLike<number>, dims: number[], bound?: ArrayLike<number>, length?: number }} want
 * @param {string} dtype
 */
export function differences(level, got, want, dtype, most = 3) {
  if (!levels[level]) return [`no tolerance level is called ${level}`];
  if (got.length !== want.data.length) {
    return [`has ${got.length} elements, expected ${want.data.length} (dims [${want.dims}])`];
  }
  const lines = [];
  let wrong = 0;
  for (let i = 0; i < got.length; i++) {
    const expected = want.data[i];
    if (accepts(level, got[i], expected, dtype, want.bound?.[i] ?? 0, want.length ?? 1)) continue;
    wrong++;
    if (wrong > most) continue;
    const distance = Math.abs(got[i] - expected) / ulp(expected, dtype);
    const limit = allowed(level, expected, dtype, want.bound?.[i] ?? 0, want.length ?? 1) / ulp(expected, dtype);
    lines.push(`at [${coordinateOf(i, want.dims)}] got ${got[i]}, expected ${formats[dtype].round(expected)}, `
      + `${distance.toPrecision(4)} units in the last place, ${limit.toPrecision(3)} allowed`);
  }
  if (wrong > most) lines.push(`and ${wrong - most} more of ${got.length} elements`);
  return lines;
}

/**
 * Compares whole numbers, of 64 bits among them, with the oracle's, one by one.
 * @param {ArrayLike<number | bigint>} got
 * @param {{ exactly: bigint[], dims: number[] }} want
 */
export function unequal(got, { exactly, dims }, most = 3) {
  if (got.length !== exactly.length) return [`has ${got.length} elements, expected ${exactly.length} (dims [${dims}])`];
  const wrong = exactly.flatMap((value, i) => (BigInt(got[i]) === value ? [] : [i]));
  const lines = wrong.slice(0, most).map((i) => `at [${coordinateOf(i, dims)}] got ${got[i]}, expected ${exactly[i]}`);
  if (wrong.length > most) lines.push(`and ${wrong.length - most} more of ${got.length} elements`);
  return lines;
}
