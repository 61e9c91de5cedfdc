// Aggregations on a GPU or its emulator: what other libraries give, what the oracle gives, and what the CPU gives.
import { readFileSync } from 'node:fs';
import { Tensor, aggregate } from '../../index.mjs';
import { flat, most, near, optionsOf, randomRows, table } from '../helpers/aggregate.mjs';
import { generator } from '../helpers/random.mjs';
import { rules as oracle } from '../oracle/aggregate.mjs';

const whole = table.rules.filter((rule) => rule.whole).map((rule) => rule.name);
const columnRules = table.rules.filter((rule) => !rule.whole).map((rule) => rule.name);

/** What does not hold; a text for each. @param {Iterable<[string, () => Promise<void>]>} checks */
async function failing(checks) {
  const wrong = [];
  for (const [name, check] of checks) {
    try {
      await check();
    } catch (error) {
      wrong.push(`${name}: ${error.code ?? ''} ${error.message}`);
    }
  }
  return wrong;
}

/** What other libraries give. @param {string} device */
export async function references(device) {
  const { cases } = JSON.parse(readFileSync(new URL('../data/aggregation.json', import.meta.url), 'utf8'));
  const checks = cases.flatMap(({ name, type, dims, rows, expected }) => expected.map(({ from, options, result, tolerance }) => {
    const data = (type === 'float64' ? Float64Array : Float32Array).from(rows, Number);
    const allowed = tolerance ?? (type === 'float32' ? 2 ** -22 : 1e-12);
    return [`${name}: ${from}, ${JSON.stringify(options)}`, async () => near(await aggregate(data, { dims: [...dims, 1], ...options, device }), result.map(Number), allowed, from)];
  }));
  return failing(checks);
}

/** Rows with ties, NaN, infinities and values that repeat, by the column. */
function spoiltRows(n, d, seed) {
  const random = generator(seed);
  const special = [NaN, Infinity, -Infinity, 1, 2, 3];
  const kinds = [(value) => value, (value) => Math.floor(value * 2), (value) => (random() < 0.1 ? NaN : value), () => special[Math.floor(random() * 6)], (value) => (random() < 0.6 ? Infinity * Math.sign(value) : value)];
  return randomRows(n, d, seed).map((row) => row.map((value, i) => kinds[i % 5](value)));
}

/** Options of the rules on columns for n rows. */
function columnOptions(n) {
  const f = Math.floor((n - 1) / 3);
  return columnRules.flatMap((rule) => {
    const own = optionsOf(rule, n, f);
    if (['median', 'meamed', 'weightedMedian'].includes(rule)) return ['upper', 'lower', 'mean'].map((even) => ({ ...own, even }));
    if (rule === 'trimmedMean') return [own, { rule, f: 0 }, { rule, f: Math.floor((n - 1) / 2) }, { rule, fraction: 0.2 }];
    return [own];
  });
}

/** The rules on columns against the oracle, as one tensor and as a list. @param {string} device @param {number[]} sizes @param {number} [d] */
export async function columns(device, sizes, d = 35) {
  const checks = sizes.flatMap((n) => [Float32Array, Float64Array].flatMap((type) => columnOptions(n).flatMap((options) => ['last', 'omit', 'propagate'].map((nan) => {
    const weighted = options.rule.startsWith('weighted');
    const rows = (weighted ? randomRows(n, d, n) : spoiltRows(n, d, n)).map((row) => [...type.from(row)]);
    const given = { ...options, nan, device };
    return [`${n} rows, ${type.name}, ${JSON.stringify({ ...options, weights: weighted, nan })}`, async () => {
      const want = oracle[options.rule](rows, { ...options, nan });
      const allowed = type === Float64Array ? 1e-12 : 1e-6;
      near(await aggregate(flat(rows, type), { ...given, dims: [n, 1, d] }), want, allowed, 'an array');
      near(await aggregate(rows.map((row) => type.from(row)), given), want, allowed, 'a list');
    }];
  }))));
  return failing(checks);
}

/** What hostile rows send, by a row's number. */
const hostile = [
  (row) => row,
  (row) => row.map((value) => -50 * value),
  (row) => row.map((value, i) => (i === 2 ? NaN : value)),
  (row) => row.map((value) => 1e30 * value),
  (row) => row.map((value, i) => (i === 0 ? Infinity : value)),
  (row) => row.map(() => 0),
];

/** Options of pre-aggregations, each before a rule. */
const pres = [['nnm'], ['bucketing'], ['clipping'], ['arc'], ['bucketing', 'nnm']];
const preOptions = { bucketSize: 2, seed: 7, clip: 3 };

/**
 * The rules on rows as wholes, pre-aggregations, policies that look at rows, and reports, as on the CPU.
 * @param {string} device @param {number[]} sizes @param {number} [d]
 */
export async function wholes(device, sizes, d = 37) {
  const checks = sizes.flatMap((n) => [Float32Array, Float64Array].flatMap((type) => ['clean', 'hostile'].flatMap((kind) => {
    const rows = randomRows(n, d, n + 1).map((row, i) => type.from(kind === 'hostile' && (i + n) % 5 === 1 ? hostile[(i >> 2) % hostile.length](row) : row));
    const f = Math.max(Math.ceil((n - 1) / 5), 0);
    const rules = whole.filter((rule) => most(rule, n) >= f).map((rule) => optionsOf(rule, n, f));
    const prepared = n > 2 * f + 4 ? pres.map((pre) => ({ ...optionsOf('trimmedMean', n, Math.min(f, 1)), pre, ...preOptions })) : [];
    const policies = kind === 'hostile' ? ['last', 'omit', 'propagate', 'drop', 'reject'] : ['last'];
    return [...rules, ...prepared, { rule: 'mean', f }, { rule: 'median', f }].flatMap((options) => policies.map((nan) => [
      `${n} rows, ${kind}, ${type.name}, ${JSON.stringify({ ...options, weights: undefined, nan })}`,
      async () => alike(rows, { ...options, nan }, device, type === Float64Array ? 1e-11 : 2e-6),
    ]));
  })));
  return failing(checks);
}

/** The same result and report, or the same error, on both devices. */
async function alike(rows, options, device, tolerance) {
  const ask = (where) => aggregate(rows, { ...options, report: true, device: where }).catch((error) => ({ error }));
  const [want, got] = [await ask('cpu'), await ask(device)];
  if (want.error || got.error) {
    if (want.error?.code !== got.error?.code || want.error.message !== got.error.message) throw want.error ? new Error(`the CPU says: ${want.error.message}; the GPU: ${got.error?.message}`) : got.error;
    return;
  }
  const finite = Math.max(1, ...Array.from(want.result, Math.abs).filter(Number.isFinite));
  near(got.result.map((value) => value / finite), want.result.map((value) => value / finite), tolerance, 'result');
  const { scores, weights, ...rest } = want.report;
  const { scores: gotScores, weights: gotWeights, ...gotRest } = got.report;
  if (JSON.stringify(gotRest) !== JSON.stringify(rest)) throw new Error(`report ${JSON.stringify(gotRest)}, expected ${JSON.stringify(rest)}`);
  for (const [name, one, other] of [['scores', gotScores, scores], ['weights', gotWeights, weights]]) {
    if ((one === undefined) !== (other === undefined)) throw new Error(`${name} of one alone`);
    other?.forEach((value, i) => near([one[i] / Math.max(1, Math.abs(value))], [value / Math.max(1, Math.abs(value))], 1e-5, `${name}[${i}]`));
  }
}

/** Rows and results in every place, the same bits as on the CPU. @param {string} device */
export async function places(device) {
  const [n, d] = [9, 70];
  const data = flat(randomRows(n, d, 3), Float32Array);
  const list = Array.from({ length: n }, (_, row) => data.slice(row * d, row * d + d));
  const same = (got, want, what) => {
    near(got, want, 0, what);
  };
  return failing(['median', 'trimmedMean', 'meamed', 'phocas', 'mean'].map((rule) => [rule, async () => {
    const options = { rule, f: 2 };
    const want = await aggregate(data, { ...options, dims: [n, d], device: 'cpu' });
    const cube = await new Tensor('float32', data, [n, 7, 10]).to(device);
    const moved = await aggregate(cube, options);
    if (moved.location !== cube.location || moved.dims.join() !== '7,10') throw new Error(`the result is ${moved.dims} on ${moved.location}`);
    same((await moved.to('cpu')).data, want, 'a tensor');
    const tensors = await Promise.all(list.map((row) => new Tensor('float32', row, [d]).to(device)));
    same((await (await aggregate(tensors, options)).to('cpu')).data, want, 'tensors');
    const mixed = await aggregate([...tensors.slice(0, 4), ...list.slice(4)], options);
    same((await mixed.to('cpu')).data, want, 'tensors and arrays');
    const out = new Float32Array(d);
    const seen = [];
    if (await aggregate(tensors, { ...options, out, onProgress: (done) => seen.push(done) }) !== out) throw new Error('out is another');
    same(out, want, 'out');
    if (seen.at(-1) !== 1) throw new Error(`progress ends at ${seen.at(-1)}`);
    same(await aggregate(data.slice(), { ...options, dims: [n, 1, d], device, transfer: true }), want, 'transfer');
    if ((await aggregate(new Float32Array(0), { ...options, dims: [n, 0, 3], device })).length !== 0) throw new Error('no columns');
  }]));
}

/** Rows that pass through a GPU in chunks, since they are larger than its memory may be. @param {string} device */
export async function streamed(device) {
  const { allocPinned, init } = await import('../../index.mjs');
  const [n, d] = [7, 30_011];
  const data = allocPinned('float32', n * d);
  data.forEach((_, i) => (data[i] = Math.sin(i * i)));
  try {
    await init(device, { memoryLimit: 600 << 10 });
    return await failing([['median', 0], ['trimmedMean', 0], ['mean', 0], ['krum', 0], ['multiKrum', 0], ['cge', 0], ['geometricMedian', 1e-6]].map(([rule, tolerance]) => [rule, async () => {
      const options = { rule, f: 2 };
      const want = await aggregate(data, { ...options, dims: [n, d], device: 'cpu' });
      for (const rows of [data, data.slice()]) near(await aggregate(rows, { ...options, dims: [n, 1, d], device }), want, tolerance, 'chunks');
    }]));
  } finally {
    await init(device, { memoryLimit: 0 });
  }
}
