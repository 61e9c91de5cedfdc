/** Rules of aggregation written out for clarity, in float64. Rows are lists of numbers; every rule gives a list. */

const sum = (values) => values.reduce((total, value) => total + value, 0);
const mean = (values) => sum(values) / values.length;
const transpose = (rows) => rows[0].map((_, column) => rows.map((row) => row[column]));
const meanOf = (rows) => transpose(rows).map(mean);
const order = (a, b) => Number(Number.isNaN(a)) - Number(Number.isNaN(b)) || (a < b ? -1 : a > b ? 1 : 0);
const sorted = (values) => [...values].sort(order);
const isBad = (row) => row.some((value) => !Number.isFinite(value));

/** Values of a column that count under a policy; undefined where the result is NaN. */
function counted(column, nan) {
  const numbers = column.filter((value) => !Number.isNaN(value));
  if (nan === 'propagate' && numbers.length < column.length) return undefined;
  if (nan !== 'omit') return column;
  return numbers.length === 0 ? undefined : numbers;
}

const perColumn = (rule) => (rows, options) =>
  transpose(rows).map((column) => {
    const values = counted(column, options.nan);
    return values === undefined ? NaN : rule(values, options, column);
  });

function middle(values, even) {
  const s = sorted(values);
  const [low, high] = [s[Math.floor((s.length - 1) / 2)], s[Math.floor(s.length / 2)]];
  return { upper: high, lower: low, mean: 0.5 * low + 0.5 * high }[even];
}

function trimmed(values, cut) {
  const kept = sorted(values).slice(cut, values.length - cut);
  return values.length <= 2 * cut ? NaN : mean(kept);
}

/** The mean of the `count` values nearest to a centre, lower values first among equals. */
function nearestMean(values, centre, count) {
  const gap = (value) => (value === centre ? 0 : Math.abs(value - centre));
  if (Number.isNaN(centre)) return NaN;
  return mean(sorted(values).sort((a, b) => order(gap(a), gap(b))).slice(0, count));
}

const square = (a, b) => (isBad(a) || isBad(b) ? Infinity : sum(a.map((value, i) => (value - b[i]) ** 2)));
const length = (row) => Math.sqrt(square(row, row.map(() => 0)));

/** Rows by score, those that are not finite last. */
function ranked(rows, scores) {
  return rows.map((_, i) => i).sort((a, b) => Number(isBad(rows[a])) - Number(isBad(rows[b])) || order(scores[a], scores[b]) || a - b);
}

function krumScores(rows, count) {
  return rows.map((row, i) => sum(sorted(rows.filter((_, j) => j !== i).map((other) => square(row, other))).slice(0, count)));
}

function bulyan(rows, { f, even = 'mean' }) {
  const [left, picked] = [[...rows], []];
  while (picked.length < rows.length - 2 * f) {
    const [best] = ranked(left, krumScores(left, Math.max(left.length - f - 2, 1)));
    picked.push(...left.splice(best, 1));
  }
  return transpose(picked).map((values) => nearestMean(values, middle(values, even), picked.length - 2 * f));
}

function subsets(n, count, from = 0) {
  if (count === 0) return [[]];
  return Array.from({ length: n - from - count + 1 }, (_, k) => subsets(n, count - 1, from + k + 1).map((rest) => [from + k, ...rest])).flat();
}

function mda(rows, { f }) {
  const diameter = (set) => Math.max(0, ...set.flatMap((i) => set.map((j) => (i === j ? 0 : square(rows[i], rows[j])))));
  const all = subsets(rows.length, rows.length - f);
  const least = Math.min(...all.map(diameter));
  return meanOf(all.find((set) => diameter(set) === least).map((i) => rows[i]));
}

function geometricMedian(rows) {
  let point = transpose(rows).map((values) => middle(values, 'mean'));
  for (let step = 0; step < 5000; step++) {
    const weights = rows.map((row) => 1 / Math.max(1e-12, Math.sqrt(square(row, point))));
    point = point.map((_, i) => sum(rows.map((row, k) => weights[k] * row[i])) / sum(weights));
  }
  return point;
}

function centeredClipping(rows, { tau, iterations = 1, start }) {
  let point = start ? [...start] : rows[0].map(() => 0);
  for (let step = 0; step < iterations; step++) {
    const moves = rows.filter((row) => !isBad(row)).map((row) => {
      const away = row.map((value, i) => value - point[i]);
      const cut = Math.min(1, tau / length(away));
      return away.map((value) => value * cut);
    });
    point = point.map((value, i) => value + sum(moves.map((move) => move[i])) / rows.length);
  }
  return point;
}

function weightedMedian(rows, { weights, even = 'upper' }) {
  return transpose(rows).map((column) => {
    const pairs = column.map((value, i) => [value, weights[i]]).filter(([, weight]) => weight > 0).sort((a, b) => order(a[0], b[0]) || a[1] - b[1]);
    const total = sum(pairs.map((pair) => pair[1]));
    let running = 0;
    const at = pairs.findIndex(([, weight]) => 2 * (running += weight) >= total);
    const next = 2 * running === total ? at + 1 : at;
    return { lower: pairs[at][0], upper: pairs[next][0], mean: at === next ? pairs[at][0] : 0.5 * pairs[at][0] + 0.5 * pairs[next][0] }[even];
  });
}

const nearestRows = (rows, scores, count) => meanOf(ranked(rows, scores).slice(0, count).map((i) => rows[i]));

/** The rules by name. */
export const rules = {
  mean: perColumn(mean),
  weightedMean: (rows, { weights }) => transpose(rows).map((column) => sum(column.map((value, i) => (weights[i] === 0 ? 0 : weights[i] * value))) / sum(weights)),
  median: perColumn((values, { even = 'upper' }) => middle(values, even)),
  weightedMedian,
  trimmedMean: perColumn((values, { f, fraction }) => trimmed(values, fraction === undefined ? f : Math.floor(fraction * values.length + 1e-9))),
  meamed: perColumn((values, { f, even = 'mean' }) => (values.length <= 2 * f ? NaN : nearestMean(values, middle(values, even), values.length - f))),
  phocas: perColumn((values, { f }) => (values.length <= 2 * f ? NaN : nearestMean(values, trimmed(values, f), values.length - f))),
  krum: (rows, { f, neighbours = 'n-f-2' }) => rows[ranked(rows, krumScores(rows, rows.length - f - Number(neighbours.at(-1))))[0]],
  multiKrum: (rows, { f, m = rows.length - f - 2, neighbours = 'n-f-2' }) => nearestRows(rows, krumScores(rows, rows.length - f - Number(neighbours.at(-1))), m),
  bulyan,
  mda,
  geometricMedian,
  centeredClipping,
  cge: (rows, { f }) => nearestRows(rows, rows.map((row) => (isBad(row) ? Infinity : length(row))), rows.length - f),
  monna: (rows, { f, trusted }) => nearestRows(rows, rows.map((row) => square(row, rows[trusted])), rows.length - f),
};
