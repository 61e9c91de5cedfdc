import { bytesPerElement } from '../inputs.mjs';

/** @typedef {import('../cases.mjs').Case} Case */

/** Least speed beside cuBLAS in float32, by size. */
const BARS = new Map([[1024, 2], [2048, 2.8], [4096, 3.4], [8192, 3.8]]);

/** The same where B stays the same between calls. */
const CONSTANT_BARS = new Map([[1024, 3], [2048, 3.3], [4096, 3.6], [8192, 4]]);

/** Least speed beside cuBLAS in TF32 at precision 'high'. */
const HIGH_BARS = new Map([[4096, 1.15], [8192, 1.3]]);

/** Products that the card's power limits are measured for longer. */
const LONG = { flops: 1e10, sampleMs: 70 };

/** Least speed beside cuBLAS in the same type of 16 bits. */
const HALF_BARS = new Map([[4096, 0.95], [8192, 0.95]]);

/** @param {Map<number, number>} bars @param {number} n @returns {import('../cases.mjs').Bar | undefined} */
const barOf = (bars, n) => (bars.has(n) ? { of: 'peer', least: Number(bars.get(n)) } : undefined);

/**
 * [m, k] times [k, n], or times [n, k] transposed.
 * @param {number} m @param {number} n @param {number} k
 * @param {Partial<Case> & { transB?: boolean, precision?: string }} [more]
 * @returns {Case}
 */
function product(m, n, k, { transB = false, type = 'float32', precision, constant, ...more } = {}) {
  const size = bytesPerElement(type);
  const shape = m === n && n === k ? `${n}` : `${m} x ${n} x ${k}`;
  return {
    name: `${type} ${shape}${transB ? ' B transposed' : ''}${precision ? `, precision ${precision}` : ''}${constant === 1 ? ', constant B' : ''}`,
    op: 'matmul',
    inputs: [[m, k], transB ? [n, k] : [k, n]],
    type,
    options: { ...(transB ? { transB } : {}), ...(precision ? { precision } : {}) },
    work: { flops: 2 * m * n * k, bytes: size * (m * k + k * n + m * n) },
    constant,
    sampleMs: 2 * m * n * k > LONG.flops ? LONG.sampleMs : undefined,
    ...more,
  };
}

/** @type {import('../cases.mjs').Suite} */
export default {
  name: 'matmul',
  title: 'Matrix products',
  cases: {
    cuda: [
      ...[256, 512, 1024, 2048, 4096, 8192].map((n) => product(n, n, n, { bar: barOf(BARS, n) })),
      ...[512, 1024, 2048, 4096, 8192].map((n) => product(n, n, n, { constant: 1, bar: barOf(CONSTANT_BARS, n) })),
      ...[2048, 4096, 8192].map((n) => product(n, n, n, { precision: 'high', bar: barOf(HIGH_BARS, n) })),
      .../** @type {const} */ (['float16', 'bfloat16']).flatMap((type) => [1024, 2048, 4096, 8192].map((n) => product(n, n, n, { type, bar: barOf(HALF_BARS, n) }))),
      product(4096, 4096, 4096, { type: 'bfloat16', transB: true }),
      product(1023, 1025, 1027, { type: 'float16' }),
      product(16, 11008, 4096, { type: 'bfloat16' }),
      product(4096, 4096, 4096, { precision: 'strict' }),
      product(4096, 4096, 4096, { transB: true }),
      product(1000, 1000, 1000),
      product(1023, 1025, 1027),
      product(1, 4096, 4096),
      product(8, 4096, 4096),
      product(16, 11008, 4096),
      product(512, 11264, 4096),
      product(512, 11264, 4096, { constant: 1 }),
      product(128, 1536, 384),
      product(65536, 64, 64),
      product(64, 64, 65536),
      ...[1024, 2048, 4096].map((n) => product(n, n, n, { type: 'float64' })),
    ],
    cpu: [
      ...[64, 256, 512, 1024].map((n) => product(n, n, n)),
      product(1, 2048, 2048),
      product(512, 512, 512, { transB: true }),
      product(512, 512, 512, { type: 'float64' }),
    ],
    smoke: [product(16, 16, 16), product(5, 3, 7, { transB: true }), product(8, 8, 8, { type: 'float64' }), product(9, 9, 9, { constant: 1 })],
  },
};
