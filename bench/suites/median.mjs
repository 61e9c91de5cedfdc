/** @typedef {import('../cases.mjs').Case} Case */

const BAR = /** @type {const} */ ({ of: 'limit', least: 0.9 });
const BARRED_ROWS = { least: 5, most: 32 };

/**
 * The median of each of d columns over n rows.
 * @param {number} n @param {number} d @param {'float32' | 'float64'} type @param {Partial<Case>} [more]
 * @returns {Case}
 */
function columnMedians(n, d, type, more) {
  const size = type === 'float32' ? 4 : 8;
  return {
    name: `${type} n ${n}, d ${d}`,
    op: 'median',
    inputs: [[n, d]],
    type,
    options: {},
    work: { bytes: size * (n + 1) * d },
    ...more,
  };
}

/** As many columns as fit the elements, rounded down to a power of two. */
const columnsFor = (/** @type {number} */ n, /** @type {number} */ elements) => 2 ** Math.floor(Math.log2(elements / n));

/** @param {number[]} rows @param {number} elements @param {'float32' | 'float64'} type */
const sweep = (rows, elements, type) => rows.map((n) => columnMedians(n, columnsFor(n, elements), type));

/** @param {Case} one @returns {Case} */
const withBar = (one) => {
  const [n] = one.inputs[0];
  return n >= BARRED_ROWS.least && n <= BARRED_ROWS.most ? { ...one, bar: BAR } : one;
};

/** @type {import('../cases.mjs').Suite} */
export default {
  name: 'median',
  title: 'Column medians',
  cases: {
    cuda: [
      ...sweep([3, 5, 8, 9, 15, 16, 25, 32, 48, 64, 100, 127, 256, 1000], 2 ** 28, 'float32').map(withBar),
      ...sweep([5, 9, 16, 32, 48, 64, 128, 1000], 2 ** 27, 'float64'),
    ],
    cpu: [...sweep([3, 5, 9, 16, 32, 64, 1000], 2 ** 20, 'float32'), ...sweep([9, 64], 2 ** 19, 'float64')],
    smoke: [3, 4, 65].flatMap((n) => [columnMedians(n, 5, 'float32'), columnMedians(n, 5, 'float64')]),
  },
};
