/** -Infinity < finite < +Infinity < NaN. */
function compare(a, b) {
  if (Number.isNaN(a)) return Number.isNaN(b) ? 0 : 1;
  if (Number.isNaN(b)) return -1;
  return a < b ? -1 : a > b ? 1 : 0;
}

/** The middle of a column that is not empty. */
function middle(column, even) {
  const sorted = Array.from(column).sort(compare);
  const upper = sorted[sorted.length >> 1];
  if (sorted.length % 2 === 1 || even === 'upper') return upper;
  const lower = sorted[(sorted.length >> 1) - 1];
  return even === 'lower' ? lower : 0.5 * lower + 0.5 * upper;
}

/** Column medians of rows [n, d]. */
export function median([x], { even = 'upper', nan = 'last' } = {}) {
  const [n, d] = x.dims;
  if (n === 0) throw new Error('the median of no rows');
  let rows = Array.from({ length: n }, (_, i) => Array.from({ length: d }, (_, j) => x.data[i * d + j]));
  if (nan === 'drop') rows = rows.filter((row) => row.every(Number.isFinite));
  if (nan === 'reject' && !rows.flat().every(Number.isFinite)) throw new Error('a value is not finite');
  if (rows.length === 0) throw new Error('no row is left');
  const data = Float64Array.from({ length: d }, (_, j) => {
    let column = rows.map((row) => row[j]);
    if (nan === 'omit') column = column.filter((v) => !Number.isNaN(v));
    if (nan === 'propagate' && column.some(Number.isNaN)) return NaN;
    return column.length === 0 ? NaN : middle(column, even);
  });
  return { data, dims: [d] };
}
