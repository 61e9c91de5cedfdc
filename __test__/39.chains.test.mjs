// Sums that are not split are one chain of FMAs in ascending k, on plain cores and on tensor cores: every bit is compared.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { matmul } from '../index.mjs';
import { device, onGpu, requireDevice } from './helpers/device.mjs';
import { fillArray, hash } from './helpers/random.mjs';

const words = new BigInt64Array(1);
const word = new Float64Array(words.buffer);

/** a + b and what its rounding lost. */
function twoSum(a, b) {
  const sum = a + b;
  const b1 = sum - a;
  return [sum, a - (sum - b1) + (b - b1)];
}

function halves(a) {
  const scaled = 134217729 * a;
  const high = scaled - (scaled - a);
  return [high, a - high];
}

/** a * b and what its rounding lost (Dekker). */
function twoProduct(a, b) {
  const product = a * b;
  const [a1, a0] = halves(a);
  const [b1, b0] = halves(b);
  return [product, a0 * b0 - (product - a1 * b1 - a0 * b1 - a1 * b0)];
}

/** a + b rounded to odd: of its two neighbours, the one whose last bit is set, unless it is exact. */
function oddSum(a, b) {
  const [sum, lost] = twoSum(a, b);
  word[0] = sum;
  if (lost === 0 || (words[0] & 1n) === 1n) return sum;
  words[0] += lost > 0 === sum > 0 ? 1n : -1n;
  return word[0];
}

/** a * b + c rounded once (Boldo and Melquiond, Emulation of FMA and correctly rounded sums, 2008), for middling exponents. */
function fma(a, b, c) {
  const [product, lost] = twoProduct(a, b);
  const [low, lower] = twoSum(c, lost);
  const [sum, rest] = twoSum(product, low);
  return sum + oddSum(lower, rest);
}

/** Exact in float64 for the factors below, so that this rounds once as well. */
const fmaFloat = (a, b, c) => Math.fround(a * b + c);

const TYPES = {
  float64: { make: (length) => new Float64Array(length), fma, options: {} },
  float32: { make: (length) => new Float32Array(length), fma: fmaFloat, options: { precision: 'strict' } },
};

function filled(dtype, length, seed) {
  const array = fillArray(TYPES[dtype].make(length), 'normal', seed, dtype);
  return dtype === 'float32' ? array.map((value) => Math.round(value * 2 ** 14) / 2 ** 14) : array;
}

const rowsOf = (m) => [...new Set([0, 7, 63, 64, m - 1])].filter((row) => row < m);

async function compare(dtype, [m, k, n], { transA = false, transB = false }) {
  const { make, fma: step, options } = TYPES[dtype];
  const seed = hash(`${m} ${k} ${n}`);
  const [a, b] = [filled(dtype, m * k, seed), filled(dtype, k * n, seed + 1)];
  const dims = [transA ? [k, m] : [m, k], transB ? [n, k] : [k, n]];
  const got = await matmul(a, b, { transA, transB, ...options, dims, device });
  for (const row of rowsOf(m)) {
    const chain = make(n);
    for (let column = 0; column < n; column++) {
      for (let p = 0; p < k; p++) {
        const x = transA ? a[p * m + row] : a[row * k + p];
        const y = transB ? b[column * k + p] : b[p * n + column];
        chain[column] = step(x, y, chain[column]);
      }
    }
    const there = got.subarray(row * n, (row + 1) * n);
    const wrong = chain.findIndex((value, column) => !Object.is(value, there[column]));
    assert.equal(wrong, -1, `row ${row}, column ${wrong}: ${there[wrong]}, the chain gives ${chain[wrong]}`);
  }
}

/** Tiles of each size; sums too short to be split. */
const SIZES = [[29, 30, 31], [62, 33, 60], [126, 40, 128], [250, 35, 252]];
const LARGE = [[1030, 64, 1022], [2047, 301, 2049], [2048, 520, 2048]];

test(`the test device ${device} is there`, requireDevice);

test('the FMA of this test rounds once', () => {
  assert.equal(fma(1 + 2 ** -52, 1 + 2 ** -52, -1), 2 ** -51 + 2 ** -104);
  assert.equal(fma(1 + 2 ** -30, 1 - 2 ** -30, 2 ** 60), 2 ** 60);
  // Half a unit and a little, which rounding twice would lose.
  assert.equal(fma(1 + 2 ** -27, 1 + 2 ** -27, 2 ** 53), 2 ** 53 + 2);
});

/** On the CPU sums have another order. */
if (onGpu) {
  for (const dtype of Object.keys(TYPES)) {
    for (const sizes of process.env.WARPWRIGHT_EMULATOR ? SIZES : [...SIZES, ...LARGE]) {
      for (const options of [{}, { transA: true }, { transB: true }, { transA: true, transB: true }]) {
        const name = `${dtype}, ${sizes.join(' x ')} ${Object.keys(options).join(' ')}`;
        test(name.trim(), () => compare(dtype, sizes, options));
      }
    }
  }
}
