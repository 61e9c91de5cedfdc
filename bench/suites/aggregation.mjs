/** @typedef {import('../cases.mjs').Case} Case */

/** Whole calls beside copying the rows once, where one pass is all that a rule needs. */
const BAR = /** @type {const} */ ({ of: 'limit', least: 0.9 });
const BARRED_ROWS = 64;

/**
 * A rule over n rows of d columns, as a call: there is no timing by the device's events, since rules decide on the host.
 * @param {string} rule @param {number} n @param {number} d @param {'float32' | 'float64'} type @param {Record<string, unknown>} [more]
 * @returns {Case}
 */
function aggregation(rule, n, d, type, more = {}) {
  const size = type === 'float32' ? 4 : 8;
  const f = Math.floor((n - 1) / 4);
  const shown = Object.entries(more).map(([name, value]) => `, ${name} ${value}`).join('');
  return {
    name: `${rule}${shown}, ${type} n ${n}, d ${d}`,
    op: 'aggregate',
    inputs: [[n, d]],
    type,
    options: { rule, f, ...more },
    work: { bytes: size * (n + 1) * d },
  };
}

/** @param {number} n @param {number} elements */
const columnsFor = (n, elements) => 2 ** Math.floor(Math.log2(elements / n));

/** @param {Case} one @returns {Case} */
const withBar = (one) => (one.inputs[0][0] <= BARRED_ROWS ? { ...one, bar: BAR } : one);

const COLUMN_RULES = ['mean', 'median', 'trimmedMean', 'meamed', 'phocas'];

/** @param {number[]} rows @param {number} elements @param {'float32' | 'float64'} type */
const sweep = (rows, elements, type) => rows.flatMap((n) => COLUMN_RULES.map((rule) => aggregation(rule, n, columnsFor(n, elements), type)));

/** @type {import('../cases.mjs').Suite} */
export default {
  name: 'aggregation',
  title: 'Aggregation',
  cases: {
    cuda: [
      ...sweep([16, 32, 64], 2 ** 29, 'float32').map(withBar),
      ...sweep([100, 256, 1000], 2 ** 28, 'float32'),
      ...sweep([32, 64], 2 ** 28, 'float64'),
      ...COLUMN_RULES.map((rule) => aggregation(rule, 11, 1_000_000, 'float32')),
    ],
    cpu: [...sweep([16, 64], 2 ** 22, 'float32'), ...sweep([256], 2 ** 20, 'float32')],
    smoke: [...COLUMN_RULES, 'krum'].flatMap((rule) => [aggregation(rule, 7, 5, 'float32'), aggregation(rule, 130, 5, 'float64')]),
  },
};
