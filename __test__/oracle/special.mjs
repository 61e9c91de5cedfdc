import { twoProduct } from './sum.mjs';

/** exp(-x * x) with the rounding error of the square taken back in. */
function expMinusSquare(x) {
  const [square, error] = twoProduct(x, x);
  return Math.exp(-square) * (1 - error);
}

/** Series of positive terms: e^(-x^2) * 2 / sqrt(pi) * sum of 2^n x^(2n+1) / (1 * 3 * 5 ... (2n+1)). */
function erfSeries(x) {
  let term = x;
  let sum = x;
  for (let n = 1; n < 200 && Math.abs(term / sum) > 1e-18; n++) {
    term *= (2 * x * x) / (2 * n + 1);
    sum += term;
  }
  return (2 / Math.sqrt(Math.PI)) * expMinusSquare(x) * sum;
}

/** Continued fraction of erfc for x >= 1, evaluated from its tail. */
function erfcFraction(x) {
  let tail = x;
  for (let n = 400; n >= 1; n--) tail = x + n / 2 / tail;
  return expMinusSquare(x) / Math.sqrt(Math.PI) / tail;
}

export function erf(x) {
  if (Number.isNaN(x)) return NaN;
  if (Math.abs(x) > 6) return Math.sign(x);
  return Math.abs(x) < 1 ? erfSeries(x) : Math.sign(x) * (1 - erfcFraction(Math.abs(x)));
}

export function erfc(x) {
  if (Number.isNaN(x)) return NaN;
  if (x > 30) return 0;
  if (x >= 1) return erfcFraction(x);
  return 1 - erf(x);
}

/** Nearest integer, halves to even, as ONNX Round. */
export function roundHalfEven(x) {
  if (!Number.isFinite(x) || Math.abs(x) >= 2 ** 52) return x;
  const low = Math.floor(x);
  const rest = x - low;
  if (rest !== 0.5) return rest < 0.5 ? low : low + 1;
  return low % 2 === 0 ? low : low + 1;
}

/** pow of IEEE 754: 1 to any power and any number to the power 0 give 1, and so does -1 to an infinite power. */
export function pow(x, y) {
  if (x === 1 || y === 0) return 1;
  if (x === -1 && Math.abs(y) === Infinity) return 1;
  return x ** y;
}

/** log(1 + e^x) without overflow. */
export function softplus(x) {
  if (Number.isNaN(x)) return NaN;
  return Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));
}

export function sigmoid(x) {
  if (x >= 0) return 1 / (1 + Math.exp(-x));
  const e = Math.exp(x);
  return e / (1 + e);
}
