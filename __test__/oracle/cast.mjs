/** Bits and sign of the whole-number types. */
const wholes = Object.fromEntries(['int64', 'int32', 'int16', 'int8', 'uint64', 'uint32', 'uint16', 'uint8'].map((name) =>
  [name, { bits: Number(name.replace(/\D/g, '')), signed: name.startsWith('int') }]));

/** From a float: truncated, the nearest of the range beyond it, 0 for NaN. */
function truncated(x, { bits, signed }) {
  const [low, high] = signed ? [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1] : [0, 2 ** bits - 1];
  return Number.isNaN(x) ? 0 : Math.min(Math.max(Math.trunc(x), low), high) + 0;
}

/** From a whole number: its lower bits. */
const lower = (x, { bits, signed }) => Number((signed ? BigInt.asIntN : BigInt.asUintN)(bits, BigInt(x)));

/** ONNX Cast. Numbers of 64 bits must lie within 2^53. Rounding to a float is left to the comparison. */
export function cast([x], { to }) {
  const whole = wholes[to];
  const change = (value) => {
    if (to === 'bool') return value === 0 ? 0 : 1;
    if (!whole) return value;
    return x.dtype in wholes || x.dtype === 'bool' ? lower(value, whole) : truncated(value, whole);
  };
  return { data: Float64Array.from(x.data, change), dims: x.dims };
}
