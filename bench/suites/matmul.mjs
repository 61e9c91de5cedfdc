/** @typedef {import('../cases.mjs').Case} Case */

const BAR = /** @type {const} */ ({ of: 'peer', least: 0.75 });

/**
 * [m, k] times [k, n], or times [n, k] transposed.
 * @param {number} m @param {number} n @param {number} k
 * @param {Partial<Case> & { transB?: boolean }} [more]
 * @returns {Case}
 */
function product(m, n, k, { transB = false, type = 'float32', ...more } = {}) {
  const size = type === 'float32' ? 4 : 8;
  const shape = m === n && n === k ? `${n}` : `${m} x ${n} x ${k}`;
  return {
    name: `${type} ${shape}${transB ? ' B transposed' : ''}`,
    op: 'matmul',
    inputs: [[m, k], transB ? [n, k] : [k, n]],
    type,
    options: transB ? { transB } : {},
    work: { flops: 2 * m * n * k, bytes: size * (m * k + k * n + m * n) },
    ...more,
  };
}

/** @type {import('../cases.mjs').Suite} */
export default {
  name: 'matmul',
  title: 'Matrix products',
  cases: {
    cuda: [
      ...[256, 512, 1024].map((n) => product(n, n, n)),
      ...[2048, 4096, 8192].map((n) => product(n, n, n, { bar: BAR })),
      product(4096, 4096, 4096, { transB: true }),
      product(1000, 1000, 1000),
      product(1023, 1025, 1027),
      product(1, 4096, 4096),
      product(8, 4096, 4096),
      product(16, 11008, 4096),
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
    smoke: [product(16, 16, 16), product(5, 3, 7, { transB: true }), product(8, 8, 8, { type: 'float64' })],
  },
};
