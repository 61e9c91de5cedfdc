import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { Tensor, aggregate, allocPinned } from '../index.mjs';
import { flat, most, near, optionsOf, randomRows, run, table } from './helpers/aggregate.mjs';
import { rejects } from './helpers/errors.mjs';
import { generator } from './helpers/random.mjs';
import { rules as oracle } from './oracle/aggregate.mjs';

const reference = JSON.parse(readFileSync(new URL('data/aggregation.json', import.meta.url), 'utf8'));
const names = table.rules.map((rule) => rule.name);
const columnRules = table.rules.filter((rule) => !rule.whole).map((rule) => rule.name);
const sortedRules = ['median', 'weightedMedian', 'trimmedMean', 'meamed', 'phocas'];
const bits = (array) => Buffer.from(array.buffer, array.byteOffset, array.byteLength).toString('hex');

test('what other libraries and the published definitions give', async () => {
  const wrong = [];
  for (const { name, type, dims, rows, expected } of reference.cases) {
    const data = (type === 'float64' ? Float64Array : Float32Array).from(rows, Number);
    for (const { from, options, result, tolerance } of expected) {
      // float32: the libraries sum in float32, half a unit of 4096 is 2^-12.
      const allowed = tolerance ?? (type === 'float32' ? 2 ** -22 : 1e-12);
      try {
        near(await aggregate(data, { dims, device: 'cpu', ...options }), result.map(Number), allowed, from);
      } catch (error) {
        wrong.push(`${name}: ${JSON.stringify(options)}: ${error.message}`);
      }
    }
  }
  assert.deepEqual(wrong, []);
});

test('every rule against the oracle, sizes 1 to 130 and beyond', async () => {
  assert.deepEqual(Object.keys(oracle).sort(), [...names].sort());
  const sizes = [...Array.from({ length: 130 }, (_, i) => i + 1), 255, 256, 257, 1000, 1701];
  for (const n of sizes) {
    for (const name of names) {
      const whole = table.rules.find((rule) => rule.name === name).whole;
      if (whole && n > 40 && n % 43 !== 0 && n !== 255) continue;
      if (name === 'mda' && n > 13) continue;
      if (whole && n > 300) continue;
      const f = Math.min(most(name, n), 1 + Math.floor(n / 5));
      if (f < 0) continue;
      const rows = randomRows(n, n > 200 ? 3 : 5, n);
      for (const type of n % 2 === 0 ? [Float64Array] : [Float64Array, Float32Array]) {
        const held = rows.map((row) => [...type.from(row)]);
        const options = optionsOf(name, n, f);
        const exact = type === Float64Array ? 1e-12 : 1e-6;
        // Weiszfeld's steps come to rest at different last digits.
        near(await run(held, options, type), oracle[name](held, options), name === 'geometricMedian' ? 1e-6 : exact, `${name}, n = ${n}, ${type.name}`);
      }
    }
  }
});

test('options of even counts, fractions, counts and neighbours', async () => {
  const rows = randomRows(10, 7, 4);
  const cases = [
    ...['upper', 'lower', 'mean'].flatMap((even) => ['median', 'meamed', 'weightedMedian', 'bulyan'].map((rule) => ({ rule, even }))),
    ...[0, 0.1, 0.25, 0.29, 0.49].map((fraction) => ({ rule: 'trimmedMean', fraction })),
    ...['n-f-1', 'n-f-2'].flatMap((neighbours) => [1, 3, 8].map((m) => ({ rule: 'multiKrum', m, neighbours }))),
    { rule: 'krum', neighbours: 'n-f-1' },
    ...[1, 2, 7].map((iterations) => ({ rule: 'centeredClipping', iterations, tau: 0.7 })),
    ...[0, 4, 9].map((trusted) => ({ rule: 'monna', trusted })),
  ];
  for (const given of cases) {
    const options = { ...optionsOf(given.rule, 10, given.rule === 'bulyan' ? 1 : 2), ...given };
    if (given.fraction !== undefined) delete options.f;
    near(await run(rows, options), oracle[given.rule](rows, options), 1e-12, JSON.stringify(given));
  }
  const hundred = randomRows(100, 3, 8);
  near(await run(hundred, { rule: 'trimmedMean', fraction: 0.29 }), oracle.trimmedMean(hundred, { f: 29 }), 1e-12, '0.29 of 100 is 29');
});

test('NaN policies of column rules', async () => {
  const random = generator(5);
  for (const n of [1, 2, 5, 8, 16, 65, 129, 140]) {
    const rows = randomRows(n, 40, n).map((row) => row.map((value, i) => (i % 3 === 0 && random() < 0.2 ? NaN : i % 3 === 1 && random() < 0.2 ? Infinity * Math.sign(value) : value)));
    for (const rule of columnRules.filter((name) => !name.startsWith('weighted'))) {
      for (const nan of ['last', 'omit', 'propagate']) {
        const options = { ...optionsOf(rule, n, Math.floor((n - 1) / 3)), nan };
        near(await run(rows, options), oracle[rule](rows, options), 1e-12, `${rule}, ${nan}, n = ${n}`);
      }
      const clean = rows.filter((row) => row.every(Number.isFinite));
      const f = Math.floor((n - 1) / 3);
      if (clean.length === 0) {
        await rejects(() => run(rows, { ...optionsOf(rule, n, f), nan: 'drop' }), 'INVALID_ARGUMENT', 'leaves no row');
      } else {
        const options = optionsOf(rule, n, f);
        const left = { ...options, f: Math.max(0, f - (n - clean.length)) };
        near(await run(rows, { ...options, nan: 'drop' }), oracle[rule](clean, left), 1e-12, `${rule}, drop, n = ${n}`);
      }
    }
  }
});

test('NaN policies of rules that look at rows', async () => {
  const rows = randomRows(12, 6, 3);
  rows[0] = rows[0].map(() => NaN);
  rows[4][2] = -Infinity;
  const f = 2;
  for (const rule of names.filter((name) => !columnRules.includes(name))) {
    const options = { ...optionsOf(rule, 12, f), trusted: rule === 'monna' ? 5 : undefined };
    const { result, report } = await run(rows, { ...options, report: true });
    assert.ok(result.every(Number.isFinite), rule);
    assert.deepEqual(report.nonFinite, [{ row: 0, coordinate: 0 }, { row: 4, coordinate: 2 }], rule);
    for (const row of report.chosen ?? []) assert.ok(![0, 4].includes(row), rule);
    if (report.weights) assert.deepEqual([report.weights[0], report.weights[4]], [0, 0]);
    if (oracle[rule] && rule !== 'geometricMedian') near(result, oracle[rule](rows, options), 1e-12, `${rule}, last`);
    const clean = rows.filter((_, row) => row !== 0 && row !== 4);
    const dropped = await run(rows, { ...options, nan: 'drop', report: true });
    assert.deepEqual([dropped.report.dropped, dropped.report.f], [[0, 4], 0], rule);
    near(dropped.result, oracle[rule](clean, { ...options, f: 0, trusted: 3 }), rule === 'geometricMedian' ? 1e-6 : 1e-12, `${rule}, drop`);
    const omitted = await run(rows, { ...options, nan: 'omit', report: true });
    assert.deepEqual([omitted.report.dropped, omitted.report.f], [[0], 2], rule);
    const passed = await run(rows, { ...options, nan: 'propagate' });
    assert.ok(passed.every(Number.isNaN), rule);
    await rejects(() => run(rows, { ...options, nan: 'reject' }), 'INVALID_ARGUMENT', 'row 0, coordinate 0');
  }
  await rejects(() => run(rows, { rule: 'monna', f, trusted: 4 }), 'INVALID_ARGUMENT', 'row 4', 'trusted');
});

test('hostile rows, the first among them, do not move the honest choice', async () => {
  for (const type of [Float64Array, Float32Array]) {
    const honest = randomRows(9, 33, 7).map((row) => row.map((value) => 1 + value * 1e-3));
    for (const bad of [1e30, -1e30, type === Float64Array ? 1e200 : 3e38, NaN, Infinity]) {
      for (const places of [[0, 1], [0, 10], [4, 5]]) {
        const rows = [...honest];
        for (const place of places) rows.splice(place, 0, honest[0].map(() => bad));
        for (const rule of names.filter((name) => !['mean', 'weightedMean', 'weightedMedian'].includes(name))) {
          const options = { ...optionsOf(rule, 11, 2), ...(rule === 'monna' ? { trusted: 7 } : {}), ...(rule === 'centeredClipping' ? { tau: 10, iterations: 60 } : {}) };
          const result = await run(rows, options, type);
          // Centered clipping ends where honest and hostile steps balance, 10 * 2 / 9 away at most.
          const reach = rule === 'centeredClipping' ? 2.5 : 0.01;
          assert.ok(result.every((value) => Math.abs(value - 1) < reach), `${rule}, ${bad}, ${places}, ${type.name}: ${result}`);
        }
      }
    }
  }
});

test('honest distances are right to 1e-12 beside any hostile rows', async () => {
  const honest = randomRows(6, 501, 9).map((row) => row.map((value) => 4096 + value));
  const square = (a, b) => a.reduce((total, value, i) => total + (value - b[i]) ** 2, 0);
  const scores = honest.map((a) => honest.filter((b) => b !== a).map((b) => square(a, b)).sort((x, y) => x - y).slice(0, 5).reduce((x, y) => x + y));
  for (const bad of [1e30, 1e200, NaN, -Infinity]) {
    const rows = [honest[0].map(() => bad), ...honest, honest[0].map((_, i) => (i === 3 ? bad : 4096))];
    const { report } = await run(rows, { rule: 'krum', f: 1, report: true });
    honest.forEach((_, i) => assert.ok(Math.abs(report.scores[i + 1] - scores[i]) <= 1e-12 * scores[i], `${bad}, row ${i}`));
    assert.ok(report.chosen[0] >= 1 && report.chosen[0] <= 6);
  }
});

test('distances that overflow or vanish are scaled', async () => {
  const unit = [[1, 0], [1.1, 0], [-1, 0], [1.05, 0], [0.9, 0.1]];
  for (const scale of [2 ** -990, 2 ** -660, 1, 2 ** 660, 2 ** 1020]) {
    const rows = unit.map((row) => row.map((value) => value * scale));
    for (const rule of ['krum', 'mda', 'cge', 'bulyan', 'geometricMedian', 'monna']) {
      const options = { ...optionsOf(rule, 5, rule === 'bulyan' ? 0 : 1), ...(rule === 'monna' ? { trusted: 0 } : {}) };
      const [want, got] = [await run(unit, options), await run(rows, options)];
      near(got.map((value) => value / scale), want, 1e-6, `${rule} at ${scale}`);
    }
  }
});

test('outliers in f rows stay out of every robust column', async () => {
  const random = generator(11);
  const values = [NaN, Infinity, -Infinity, 1e308, -1e308, -0];
  for (let round = 0; round < 60; round++) {
    const n = 3 + Math.floor(random() * 70);
    const f = Math.floor((n - 1) / 2);
    const rows = randomRows(n, 9, round);
    const honest = rows.slice(f);
    for (let row = 0; row < f; row++) rows[row] = rows[row].map(() => values[Math.floor(random() * values.length)]);
    rows.sort(() => random() - 0.5);
    for (const rule of ['median', 'trimmedMean', 'meamed', 'phocas']) {
      const result = await run(rows, { rule, f });
      for (let i = 0; i < 9; i++) {
        const column = honest.map((row) => row[i]);
        assert.ok(result[i] >= Math.min(...column) && result[i] <= Math.max(...column), `${rule}, n = ${n}: ${result[i]}`);
      }
    }
  }
});

test('the nearest values, where the lowest repeat and where a centre is infinite', async () => {
  const cases = [
    [[0, 0, 5, 5, 5, 6, 7], 1, 28 / 6], [[3, 0, 2, 0], 1, 5 / 3], [[4, 4, 4, 2, 9], 1, 3.5], [[0, 0, 1, 2], 1, 1 / 3],
    [[-Infinity, 1, Infinity, Infinity], 1, NaN], [[0, 1, Infinity, Infinity], 1, Infinity], [[-Infinity, -Infinity, 1, 2, 3], 1, -Infinity],
  ];
  for (const [column, f, want] of cases) {
    const rows = column.map((value) => [value]);
    for (const even of ['mean', 'upper']) near(await run(rows, { rule: 'meamed', f, even }), oracle.meamed(rows, { f, even }), 1e-15, `${column}, ${even}`);
    near(await run(rows, { rule: 'meamed', f, even: 'upper' }), [want], 1e-15, String(column));
  }
});

test('same bits on every run, and for column rules in every order of rows', async () => {
  for (const [n, d] of [[9, 50_001], [130, 301]]) {
    const rows = randomRows(n, d, 21);
    const turned = [...rows.slice(3), ...rows.slice(0, 3)].reverse();
    const weights = rows.map((_, i) => 1 + (i % 4) / 3);
    const weightOf = new Map(rows.map((row, i) => [row, weights[i]]));
    for (const rule of names.filter((name) => n < 20 || name !== 'mda')) {
      const options = { ...optionsOf(rule, n, 1), ...(rule.startsWith('weighted') ? { weights } : {}) };
      const first = bits(await run(rows, options, Float32Array));
      for (let again = 0; again < 3; again++) assert.equal(bits(await run(rows, options, Float32Array)), first, rule);
      if (!sortedRules.includes(rule)) continue;
      const moved = rule === 'weightedMedian' ? { ...options, weights: turned.map((row) => weightOf.get(row)) } : options;
      assert.equal(bits(await run(turned, moved, Float32Array)), first, `${rule} of other order`);
    }
  }
});

test('equal rows, shifts and scales', async () => {
  const rows = randomRows(11, 5, 31);
  for (const rule of names) {
    const options = optionsOf(rule, 11, 2);
    near(await run(rows.map(() => rows[0]), { ...options, tau: options.tau && 100 }), rows[0], 1e-15, `${rule} of equal rows`);
    const tau = options.tau && { tau: options.tau * 4 };
    near((await run(rows.map((row) => row.map((value) => 4 * value)), { ...options, ...tau })).map((value) => value / 4), await run(rows, options), 1e-12, `${rule} scaled`);
    if (rule === 'cge' || rule === 'centeredClipping') continue;
    near((await run(rows.map((row) => row.map((value) => value + 64)), options)).map((value) => value - 64), await run(rows, options), 1e-9, `${rule} shifted`);
  }
});

test('no columns, odd columns, views with offsets, lists, tensors and pinned memory', async () => {
  for (const rule of names) {
    const options = { ...optionsOf(rule, 7, 1), device: 'cpu' };
    assert.equal((await aggregate(new Float32Array(0), { ...options, dims: [7, 0] })).length, 0, rule);
    const rows = randomRows(7, 17, 2);
    const want = await run(rows, options);
    const bytes = new ArrayBuffer(8 * (7 * 17 + 1));
    const shifted = new Float64Array(bytes, 8);
    shifted.set(rows.flat());
    const before = bits(shifted);
    assert.equal(bits(await aggregate(shifted, { ...options, dims: [7, 17] })), bits(want), `${rule} of a view`);
    const list = rows.map((_, row) => shifted.subarray(row * 17, row * 17 + 17));
    assert.equal(bits(await aggregate(list, options)), bits(want), `${rule} of a list`);
    assert.equal(bits(shifted), before, `${rule} writes its input`);
    const pinned = allocPinned('float64', 7 * 17);
    pinned.set(rows.flat());
    assert.equal(bits(await aggregate(pinned, { ...options, dims: [7, 17] })), bits(want), `${rule} of pinned memory`);
    const tensor = await aggregate(new Tensor('float64', flat(rows), [7, 17]), options);
    assert.deepEqual([tensor.dims, bits(tensor.data)], [[17], bits(want)], `${rule} of a tensor`);
  }
  const tensors = randomRows(5, 6, 3).map((row) => new Tensor('float32', Float32Array.from(row), [2, 3]));
  assert.deepEqual((await aggregate(tensors, { rule: 'mean', device: 'cpu' })).dims, [2, 3]);
  const cube = new Tensor('float32', new Float32Array(24), [4, 2, 3]);
  assert.deepEqual((await aggregate(cube, { rule: 'trimmedMean', f: 1, device: 'cpu' })).dims, [2, 3]);
});

test('out, transfer and start', async () => {
  const rows = randomRows(5, 4, 6);
  const want = await run(rows, { rule: 'trimmedMean', f: 1 });
  const out = new Float64Array(6).subarray(1, 5);
  assert.equal(await run(rows, { rule: 'trimmedMean', f: 1, out }), out);
  near(out, want, 0, 'out');
  const tensor = new Tensor('float64', new Float64Array(4), [4]);
  assert.equal(await run(rows, { rule: 'trimmedMean', f: 1, out: tensor }), tensor);
  near(tensor.data, want, 0, 'out as a tensor');
  await rejects(() => run(rows, { rule: 'mean', out: new Float32Array(4) }), 'SHAPE_MISMATCH', "'out'", 'float64', 'float32');
  await rejects(() => run(rows, { rule: 'mean', out: new Float64Array(3) }), 'SHAPE_MISMATCH', "'out'", '4', '3');
  await rejects(() => run(rows, { rule: 'mean', out: [] }), 'INVALID_ARGUMENT', "'out'");
  const given = flat(rows);
  near(await aggregate(given, { rule: 'trimmedMean', f: 1, dims: [5, 4], device: 'cpu', transfer: true }), want, 0, 'transfer');
  assert.equal(given.length, 0);
  const start = Float64Array.from([10, -20, 30, 5]);
  for (const iterations of [1, 5]) {
    const options = { rule: 'centeredClipping', tau: 0.5, iterations };
    near(await run(rows, { ...options, start }), oracle.centeredClipping(rows, { ...options, start }), 1e-12, 'start');
  }
});

test('pre-aggregations', async () => {
  const rows = randomRows(9, 6, 12);
  const square = (a, b) => a.reduce((total, value, i) => total + (value - b[i]) ** 2, 0);
  const meanOf = (list) => list[0].map((_, i) => list.reduce((total, row) => total + row[i], 0) / list.length);
  const mixed = rows.map((row) => meanOf([...rows].sort((a, b) => square(row, a) - square(row, b)).slice(0, 7)));
  for (const rule of ['median', 'krum', 'trimmedMean']) {
    near(await run(rows, { rule, f: 2, pre: 'nnm' }), oracle[rule](mixed, { f: 2 }), 1e-12, `nnm, ${rule}`);
  }
  const { result, report } = await run(rows, { rule: 'median', pre: ['bucketing'], bucketSize: 2, seed: 3, report: true });
  assert.deepEqual(report.buckets.flat().sort(), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
  assert.deepEqual(report.buckets.map((rows) => rows.length), [2, 2, 2, 2, 1]);
  near(result, oracle.median(report.buckets.map((bucket) => meanOf(bucket.map((row) => rows[row]))), {}), 1e-12, 'bucketing');
  const again = await run(rows, { rule: 'median', pre: 'bucketing', bucketSize: 2, seed: 3, report: true });
  assert.deepEqual(again.report.buckets, report.buckets);
  const other = await run(rows, { rule: 'median', pre: 'bucketing', bucketSize: 2, seed: 4, report: true });
  assert.notDeepEqual(other.report.buckets, report.buckets);
  const length = (row) => Math.sqrt(square(row, row.map(() => 0)));
  const clipped = (most) => rows.map((row) => row.map((value) => value * Math.min(1, most / length(row))));
  near(await run(rows, { rule: 'mean', pre: 'clipping', clip: 1.5 }), oracle.mean(clipped(1.5), {}), 1e-12, 'clipping');
  const lengths = rows.map(length).sort((a, b) => a - b);
  near(await run(rows, { rule: 'mean', pre: 'arc', f: 2 }), oracle.mean(clipped(lengths[9 - 3 - 1]), {}), 1e-12, 'arc');
  const chained = await run(rows, { rule: 'median', pre: ['clipping', 'nnm', 'bucketing'], clip: 2, f: 2, bucketSize: 1 });
  assert.ok(chained.every(Number.isFinite));
  rows[0] = rows[0].map(() => NaN);
  for (const pre of ['nnm', 'arc', 'clipping']) {
    assert.ok((await run(rows, { rule: 'trimmedMean', f: 2, pre, ...(pre === 'clipping' ? { clip: 1 } : {}) })).every(Number.isFinite), pre);
  }
});

test('reports', async () => {
  const rows = [[0, 0], [0, 1], [1, 0], [1, 1], [0.5, 0.4], [50, 50], [NaN, 1]];
  const krum = await run(rows, { rule: 'multiKrum', f: 2, report: true });
  assert.equal(krum.report.rule, 'multiKrum');
  assert.deepEqual([krum.report.n, krum.report.f], [7, 2]);
  assert.deepEqual(krum.report.chosen.length, 3);
  assert.equal(krum.report.chosen[0], 4);
  assert.deepEqual([...krum.report.chosen, ...krum.report.rejected].sort(), [0, 1, 2, 3, 4, 5, 6]);
  assert.ok(krum.report.rejected.includes(5) && krum.report.rejected.includes(6));
  assert.equal(krum.report.scores.length, 7);
  assert.equal(krum.report.scores[6], Infinity);
  assert.deepEqual(krum.report.notes, []);
  const few = await run(rows.slice(0, 5), { rule: 'krum', f: 2, report: true });
  assert.match(few.report.notes[0], /2f \+ 3 = 7/);
  const geometric = await run(rows, { rule: 'geometricMedian', report: true });
  assert.ok(Math.abs(geometric.report.weights.reduce((a, b) => a + b) - 1) < 1e-12);
  assert.ok(geometric.report.steps > 1);
  const median = await run([[NaN], [NaN], [1]], { rule: 'median', report: true });
  assert.deepEqual([median.report.nanCoordinates, median.report.chosen], [1, undefined]);
  assert.ok(Number.isNaN(median.result[0]));
});

test('progress and signals', async () => {
  const rows = new Float32Array(40 * 100_000).map((_, i) => Math.sin(i));
  const seen = [];
  await aggregate(rows, { rule: 'krum', f: 3, dims: [40, 100_000], device: 'cpu', onProgress: (done) => seen.push(done) });
  assert.equal(seen.at(-1), 1);
  assert.ok(seen.every((done, i) => done >= 0 && done <= 1 && (i === 0 || done >= seen[i - 1])), String(seen));
  const early = new AbortController();
  early.abort();
  await rejects(() => aggregate(rows, { rule: 'mean', dims: [40, 100_000], signal: early.signal }), 'ABORTED');
  const late = new AbortController();
  const pending = rejects(() => aggregate(rows, { rule: 'krum', f: 3, dims: [40, 100_000], device: 'cpu', signal: late.signal }), 'ABORTED');
  setTimeout(() => late.abort(), 5);
  await pending;
  assert.deepEqual([...await run([[1], [2], [3]], { rule: 'median' })], [2]);
});

test('100,000 rows take no quadratic time in column rules', async () => {
  const n = 100_000;
  const rows = new Float32Array(n * 2).map((_, i) => (i * 7919) % 100_003);
  for (const rule of columnRules) {
    const began = performance.now();
    const [first] = await aggregate(rows, { ...optionsOf(rule, n, 1000), dims: [n, 2], device: 'cpu' });
    assert.ok(first > 0 && performance.now() - began < 10_000, `${rule} took ${performance.now() - began} ms`);
  }
  await rejects(() => aggregate(rows, { rule: 'krum', f: 1, dims: [n, 2], device: 'cpu' }), 'SHAPE_MISMATCH', '16384', '100000');
});
