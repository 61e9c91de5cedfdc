/** Element types of the cases: their numbers, and the arrays that hold them. */

/** The nearest number with that many bits of fraction, ties to even. */
function rounder(fraction, minExponent, max) {
  return (x) => {
    if (x === 0 || !Number.isFinite(x)) return x;
    const step = 2 ** (Math.max(exponentOf(x), minExponent) - fraction);
    const floor = Math.floor(x / step);
    const rest = x / step - floor;
    const up = rest > 0.5 || (rest === 0.5 && floor % 2 !== 0);
    const y = (floor + (up ? 1 : 0)) * step;
    return Math.abs(y) > max ? Math.sign(x) * Infinity : y;
  };
}

/** The exponent of a number's leading bit. */
export function exponentOf(x) {
  const size = Math.abs(x);
  const exponent = Math.floor(Math.log2(size));
  return 2 ** exponent > size ? exponent - 1 : exponent;
}

const half = (fraction, minExponent, max) => ({ fraction, minExponent, max, unit: 2 ** -(fraction + 1), round: rounder(fraction, minExponent, max), bits: true });
const whole = () => ({ fraction: 0, minExponent: 0, unit: 0, round: (x) => x });

/** Bits of the fraction, least exponent of a normal number, largest number, half the distance of numbers at 1. */
export const formats = {
  float32: { fraction: 23, minExponent: -126, max: 3.4028234663852886e38, round: Math.fround, unit: 2 ** -24 },
  float64: { fraction: 52, minExponent: -1022, max: Number.MAX_VALUE, round: (x) => x, unit: 2 ** -53 },
  float16: half(10, -14, 65504),
  bfloat16: half(7, -126, 255 * 2 ** 120),
  ...Object.fromEntries(['int64', 'int32', 'int16', 'int8', 'uint64', 'uint32', 'uint16', 'uint8', 'bool'].map((name) => [name, whole()])),
};

const arrays = {
  float32: Float32Array, float64: Float64Array, float16: Uint16Array, bfloat16: Uint16Array, int64: BigInt64Array, int32: Int32Array,
  int16: Int16Array, int8: Int8Array, uint64: BigUint64Array, uint32: Uint32Array, uint16: Uint16Array, uint8: Uint8Array, bool: Uint8Array,
};

/** An array for elements of the type; bits for those that no array of numbers holds. */
export const arrayOf = (dtype, length) => new arrays[dtype](length);

/** Bits of a number in a format of 16 bits. */
function encode(x, { fraction, minExponent, round }) {
  const top = (1 << 15) - (1 << fraction);
  const sign = x < 0 || Object.is(x, -0) ? 0x8000 : 0;
  const y = Math.abs(round(x));
  if (Number.isNaN(y)) return top + (1 << (fraction - 1));
  if (y === Infinity) return sign + top;
  const exponent = y === 0 ? minExponent : Math.max(exponentOf(y), minExponent);
  return sign + (exponent - minExponent) * 2 ** fraction + y / 2 ** (exponent - fraction);
}

/** The number that bits of a format stand for. */
function decode(bits, { fraction, minExponent }) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits & 0x7fff) >> fraction;
  const rest = bits & ((1 << fraction) - 1);
  if (exponent === 0x7fff >> fraction) return rest ? NaN : sign * Infinity;
  const significand = exponent === 0 ? rest : rest + (1 << fraction);
  return sign * significand * 2 ** (Math.max(exponent, 1) - 1 + minExponent - fraction);
}

/** Writes numbers as elements of the type. */
export function store(array, numbers, dtype) {
  const format = formats[dtype];
  const wide = array instanceof BigInt64Array || array instanceof BigUint64Array;
  for (let i = 0; i < array.length; i++) {
    const x = numbers[i];
    if (format.bits && array instanceof Uint16Array) array[i] = encode(x, format);
    else array[i] = wide ? BigInt(Number.isFinite(x) ? Math.trunc(x) : 0) : dtype === 'bool' ? Number(x > 0) : x;
  }
  return array;
}

/** The numbers that elements of the type stand for. */
export function load(array, dtype) {
  const format = formats[dtype];
  if (format.bits && array instanceof Uint16Array) return Float64Array.from(array, (bits) => decode(bits, format));
  return array instanceof Float32Array || array instanceof Float64Array ? array : Float64Array.from(array, Number);
}
