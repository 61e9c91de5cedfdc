import { test } from 'node:test';
import { Tensor, aggregate, gpuStatus } from '../index.mjs';
import { most, near, optionsOf, randomRows, run, table } from './helpers/aggregate.mjs';
import { rejects } from './helpers/errors.mjs';

const rows = randomRows(7, 3, 1);
const refused = (options, ...parts) => rejects(() => run(rows, options), 'INVALID_ARGUMENT', ...parts);

test('bounds name the rule, the bound and both numbers', async () => {
  for (const { name, bound } of table.rules) {
    for (const n of [1, 2, 3, 7, 12, 21]) {
      const f = most(name, n) + 1;
      // Krum goes on to its last neighbour.
      const beyond = bound.startsWith('n - f') ? Math.max(0, n - 2) : Math.max(0, f);
      const options = { ...optionsOf(name, n, beyond), ...(name === 'monna' ? { trusted: 0 } : {}) };
      const parts = name === 'mda' && n > 20 ? ['20', 'n = 21'] : [`'${name}'`, bound, `n = ${n}, f = ${beyond}`];
      if (name !== 'multiKrum') await rejects(() => run(randomRows(n, 2, n), options), 'INVALID_ARGUMENT', ...parts);
    }
  }
  await refused({ rule: 'mean', pre: 'nnm', f: 4 }, 'n > 2f');
  await refused({ rule: 'median', pre: 'bucketing', bucketSize: 4, f: 1 }, "'median'", 'n = 2, f = 1');
  const bad = rows.map((row, i) => (i < 4 ? row.map(() => NaN) : row));
  await rejects(() => run(bad, { rule: 'krum', f: 1, nan: 'omit' }), 'INVALID_ARGUMENT', 'n = 3, f = 1');
});

test('rules and options that are not there', async () => {
  await refused({}, "'rule'", 'required', 'krum');
  await refused({ rule: 'krumm', f: 1 }, "'krumm'", "did you mean 'krum'?");
  await refused({ rule: 5 }, "'rule'", '5');
  await refused({ rule: 'mean', pre: 'nmm' }, "'nmm'", "did you mean 'nnm'?");
  await refused({ rule: 'mean', pre: 3 }, "'pre'");
  await refused({ rule: 'mean', evn: 'mean' }, "unknown option 'evn'");
  await refused({ rule: 'mean', even: 'mean' }, "'mean' takes no 'even'");
  await refused({ rule: 'mean', bucketSize: 2 }, "'mean' takes no 'bucketSize'");
  for (const { name, required } of [...table.rules, ...table.pres]) {
    const options = table.pres.some((pre) => pre.name === name) ? { rule: 'mean', pre: name } : { rule: name };
    if (required.length > 0) await refused(options, `'${name}' needs the option`, `'${required[0].split(' ')[0]}'`);
    if (required.length === 2) await refused({ ...options, f: 1 }, "'trusted'");
  }
});

test('values of options', async () => {
  for (const f of [-1, 1.5, NaN, Infinity]) await refused({ rule: 'trimmedMean', f }, "'f'", String(f));
  await refused({ rule: 'trimmedMean', f: '1' }, "'f'", "'1'");
  for (const fraction of [-0.1, 0.5, NaN]) await refused({ rule: 'trimmedMean', fraction }, "'fraction'", String(fraction));
  await refused({ rule: 'trimmedMean', fraction: 0.1, f: 1 }, 'not both');
  near(await run([[1], [3]], { rule: 'trimmedMean', fraction: 0.4999999999 }), [2], 0, 'one value is left');
  await refused({ rule: 'median', even: 'middle' }, "'even'", "'middle'");
  await refused({ rule: 'median', nan: 'first' }, "'nan'", "'first'");
  for (const m of [0, 6, 1.5]) await refused({ rule: 'multiKrum', f: 2, m }, "'m'", String(m));
  for (const trusted of [-1, 7, 0.5]) await refused({ rule: 'monna', f: 1, trusted }, "'trusted'", String(trusted));
  for (const tau of [0, -1, NaN, Infinity]) await refused({ rule: 'centeredClipping', tau }, "'tau'", String(tau));
  for (const iterations of [0, 1.5]) await refused({ rule: 'geometricMedian', iterations }, "'iterations'", String(iterations));
  await refused({ rule: 'geometricMedian', nu: -1 }, "'nu'", '-1');
  for (const clip of [0, NaN]) await refused({ rule: 'mean', pre: 'clipping', clip }, "'clip'", String(clip));
  for (const bucketSize of [0, 1.5]) await refused({ rule: 'mean', pre: 'bucketing', bucketSize }, "'bucketSize'", String(bucketSize));
  await refused({ rule: 'mean', pre: 'bucketing', bucketSize: 2, seed: -1 }, "'seed'", '-1');
});

test('weights', async () => {
  const weighted = (weights) => ({ rule: 'weightedMean', weights });
  await refused(weighted([1, 2]), "'weights'", '7', 'got 2');
  for (const bad of [-1, NaN, Infinity]) await refused(weighted([1, 1, 1, bad, 1, 1, 1]), "'weights'", `got ${bad} for row 3`);
  await refused(weighted([0, 0, 0, 0, 0, 0, 0]), "'weights'", 'sum above 0');
  await refused(weighted('1'), "'weights'");
  await refused({ ...weighted([1, 1, 1, 1, 1, 1, 1]), pre: 'bucketing', bucketSize: 2 }, "'bucketing'");
  const nan = rows.map((row, i) => (i < 3 ? row.map(() => NaN) : row));
  await rejects(() => run(nan, { ...weighted([1, 1, 1, 0, 0, 0, 0]), nan: 'drop' }), 'INVALID_ARGUMENT', 'rows that are left');
  await run(rows, weighted(new Float32Array(7).fill(2)));
});

test('rows', async () => {
  const options = { rule: 'mean', device: 'cpu' };
  await rejects(() => aggregate([], options), 'INVALID_ARGUMENT', 'at least one row');
  await rejects(() => aggregate(new Float64Array(6), options), 'SHAPE_MISMATCH', '[n, d]', '[6]');
  await rejects(() => aggregate(new Float64Array(6), { ...options, dims: [4, 2] }), 'SHAPE_MISMATCH', '8', '6');
  await rejects(() => aggregate(new Float64Array(0), { ...options, dims: [0, 2] }), 'SHAPE_MISMATCH', '[0, 2]');
  for (const dims of [[-1, 2], [1.5, 2], [NaN, 1], 'x']) await rejects(() => aggregate(new Float64Array(6), { ...options, dims }), 'INVALID_ARGUMENT', 'dims');
  await rejects(() => aggregate(new Float64Array(6), { ...options, dims: [2 ** 40, 2 ** 40] }), 'SHAPE_MISMATCH');
  await rejects(() => aggregate([new Float64Array(2), new Float64Array(3)], options), 'SHAPE_MISMATCH', 'row 1', '[3]');
  await rejects(() => aggregate([new Float64Array(2), new Float32Array(2)], options), 'SHAPE_MISMATCH', 'row 1', 'float32');
  await rejects(() => aggregate([new Float64Array(2)], { ...options, dims: [1, 2] }), 'INVALID_ARGUMENT', "'dims'");
  await rejects(() => aggregate(new Int32Array(2), { ...options, dims: [1, 2] }), 'UNSUPPORTED_DTYPE', 'int32');
  for (const value of [undefined, null, 'abc', 5, {}]) await rejects(() => aggregate(value, options), 'INVALID_ARGUMENT', "'rows'");
  await rejects(() => aggregate([new Float64Array(2), [1, 2]], options), 'INVALID_ARGUMENT', 'row 1');
  await rejects(() => aggregate(new Tensor('float64', new Float64Array(2), [1, 2]), { ...options, dims: [1, 2] }), 'INVALID_ARGUMENT', 'dims');
  const gone = new Tensor('float64', new Float64Array(2), [1, 2]);
  gone.dispose();
  await rejects(() => aggregate(gone, options), 'DISPOSED');
});

test('common options', async () => {
  await rejects(() => aggregate(new Float64Array(2)), 'INVALID_ARGUMENT', 'options');
  await rejects(() => aggregate(new Float64Array(2), {}, 3), 'INVALID_ARGUMENT', 'got 3 arguments');
  await refused({ rule: 'mean', device: 5 }, "'device'");
  await refused({ rule: 'mean', transfer: 1 }, "'transfer'");
  await refused({ rule: 'mean', report: 'yes' }, "'report'");
  await refused({ rule: 'mean', onProgress: {} }, "'onProgress'");
  await refused({ rule: 'mean', signal: {} }, "'signal'");
  await refused({ rule: 'mean', start: new Float64Array(3) }, "'start'", 'centeredClipping');
  await rejects(() => run(rows, { rule: 'centeredClipping', tau: 1, start: new Float64Array(2) }), 'SHAPE_MISMATCH', "'start'");
  await rejects(() => run(rows, { rule: 'centeredClipping', tau: 1, start: Float64Array.of(0, NaN, 0) }), 'INVALID_ARGUMENT', "'start'", 'coordinate 1');
  await rejects(() => run(rows, { rule: 'mean', device: 'tpu' }), 'DEVICE_NOT_FOUND');
  if (!gpuStatus().available) await rejects(() => run(rows, { rule: 'mean', device: 'cuda' }), gpuStatus().code);
  // The next valid call works.
  await run(rows, { rule: 'krum', f: 1 });
});
