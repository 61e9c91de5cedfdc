/** @typedef {import('../cases.mjs').Case} Case */

/** Least speed beside cuBLAS of every case. */
const BAR = /** @type {const} */ ({ of: 'peer', least: 1 });

/**
 * [..., m, k] times [..., k, n], or times [..., n, k] transposed, in float32.
 * @param {number[]} batch @param {number} m @param {number} n @param {number} k @param {boolean} [transB]
 * @returns {Case}
 */
function product(batch, m, n, k, transB = false) {
  const count = batch.reduce((all, size) => all * size, 1);
  const shape = m === n && n === k ? `${n}` : `${m} x ${n} x ${k}`;
  return {
    name: `${count > 1 ? `${count} times ` : ''}${shape}${transB ? ', B transposed' : ''}`,
    op: 'matmul',
    inputs: [[...batch, m, k], [...batch, ...(transB ? [n, k] : [k, n])]],
    type: 'float32',
    options: transB ? { transB } : {},
    work: { flops: 2 * count * m * n * k, bytes: 4 * count * (m * k + k * n + m * n) },
    bar: BAR,
  };
}

const rows = Array.from({ length: 16 }, (_, index) => index + 1);

/** The sizes that services run: few rows by weights, layers of small models, long and narrow ones, batches. @type {import('../cases.mjs').Suite} */
export default {
  name: 'gemm',
  title: 'Matrix products, the shapes of services, float32',
  mean: 2.5,
  cases: {
    cuda: [
      ...[false, true].flatMap((transB) => rows.map((m) => product([], m, 4096, 4096, transB))),
      product([], 16, 11008, 4096),
      product([], 16, 11008, 4096, true),
      product([], 32, 384, 384),
      product([], 128, 1536, 384),
      product([], 4096, 1536, 384),
      product([], 64, 64, 65536),
      product([], 65536, 64, 64),
      product([], 1000, 1000, 1000),
      product([], 1023, 1025, 1027),
      ...[128, 256, 512].map((n) => product([], n, n, n)),
      product([12], 128, 64, 128),
      product([32], 128, 128, 128),
      product([256], 32, 32, 32),
    ],
    cpu: [product([], 1, 1024, 1024), product([], 32, 384, 384), product([8], 64, 64, 64)],
    smoke: [product([], 3, 40, 70), product([], 1, 33, 80, true), product([2], 9, 17, 64)],
  },
};
