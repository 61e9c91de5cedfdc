import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Tensor, devices, matmul, memoryStats, trimMemory } from '../index.mjs';
import { device, requireDevice } from './helpers/device.mjs';
import { fillArray, generator, hash } from './helpers/random.mjs';
import { differences } from './helpers/tolerance.mjs';
import { oracle } from './oracle/index.mjs';

/**
 * Products large enough for the tensor cores of a GPU that has them. Some rows of each result are compared, all of their
 * columns with them; src/ops/matmul/split/tests.rs holds the same sizes and says which of them take that route.
 */
test(`the test device ${device} is there`, requireDevice);

const sizeOf = (dims) => dims.reduce((size, dim) => size * dim, 1);

/** A matrix, or a batch of them: by a fill's name or value by value. */
function filled(dims, fill, seed) {
  const array = new Float32Array(sizeOf(dims));
  if (typeof fill !== 'function') return fillArray(array, fill, seed, 'float32');
  const random = generator(seed);
  const columns = dims.at(-1);
  for (let i = 0; i < array.length; i++) array[i] = fill(random, Math.floor(i / columns), i % columns);
  return array;
}

/** Rows at the edges of tiles, and some between. */
const rowsOf = (m, more = []) =>
  [...new Set([0, 1, 63, 64, 127, 128, Math.floor(m / 2), m - 1, ...more])].filter((row) => row < m);

/** Row `i` of A of a batch's matrix. */
function rowOf(a, { m, k, transA }, matrix, i) {
  const start = matrix * m * k;
  if (!transA) return a.subarray(start + i * k, start + (i + 1) * k);
  return Float32Array.from({ length: k }, (_, p) => a[start + p * m + i]);
}

const joined = (parts) => {
  const whole = new Float32Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
};

/** The rows compared: what came and what the oracle says. */
async function compare({ name, m, n, k, options = {}, fillA = 'uniform', fillB = 'uniform', more, precision, batch = 1, shared }) {
  const seed = hash(name);
  const { transA = false, transB = false } = options;
  const dimsA = transA ? [k, m] : [m, k];
  const dimsB = transB ? [n, k] : [k, n];
  const batches = batch > 1 ? [batch] : [];
  const a = filled([...batches, ...dimsA], fillA, seed);
  const b = filled([...(shared ? [] : batches), ...dimsB], fillB, seed + 1);
  const c = options.beta ? filled([...batches, m, n], 'uniform', seed + 2) : undefined;
  const bias = options.bias ? filled([n], 'uniform', seed + 3) : undefined;
  const dims = [[...batches, ...dimsA], [...(shared ? [] : batches), ...dimsB], c && [...batches, m, n], bias && [n]];
  const got = await matmul(a, b, { ...options, c, bias, dims, device, precision });
  const rows = rowsOf(m, more);
  const parts = { got: [], want: [], bound: [] };
  const chain = [];
  for (let matrix = 0; matrix < batch; matrix++) {
    const left = { data: joined(rows.map((row) => rowOf(a, { m, k, transA }, matrix, row))), dims: [rows.length, k] };
    const right = { data: shared ? b : b.subarray(matrix * k * n, (matrix + 1) * k * n), dims: dimsB };
    const pick = (all) => joined(rows.map((row) => all.subarray((matrix * m + row) * n, (matrix * m + row + 1) * n)));
    const named = { ...(c ? { c: { data: pick(c), dims: [rows.length, n] } } : {}), ...(bias ? { bias: { data: bias, dims: [n] } } : {}) };
    const want = oracle.matmul([left, right], { ...options, transA: false, ...named });
    parts.got.push(pick(got));
    parts.want.push(want.data);
    parts.bound.push(want.bound);
    chain.push({ left: left.data, right: right.data, transB });
  }
  const data = Float64Array.from(parts.want.flatMap((part) => [...part]));
  const bound = Float64Array.from(parts.bound.flatMap((part) => [...part]));
  return { got: joined(parts.got), want: { data, bound, dims: [batch, rows.length, n], length: k }, whole: got, chain, again: () => matmul(a, b, { ...options, c, bias, dims, device, precision }) };
}

const power = (random) => (random() < 0.5 ? -1 : 1) * 10 ** (24 * random() - 12);
const at = (positions) => ({ fill: 'uniform', at: positions });

const rows = [
  { name: 'odd sizes', m: 1023, n: 1025, k: 1027 },
  { name: 'A transposed', m: 1100, n: 901, k: 703, options: { transA: true } },
  { name: 'B transposed', m: 901, n: 1100, k: 703, options: { transB: true } },
  { name: 'both transposed', m: 1028, n: 900, k: 704, options: { transA: true, transB: true } },
  { name: 'k of 64', m: 3073, n: 3071, k: 64 },
  { name: 'k of 65', m: 3072, n: 3072, k: 65, options: { transB: true } },
  { name: 'long sums', m: 1000, n: 640, k: 4096, options: { transA: true } },
  { name: 'a batch', m: 520, n: 700, k: 512, batch: 3 },
  { name: 'a batch by one B', m: 520, n: 700, k: 512, batch: 3, shared: true, options: { transA: true } },
  { name: 'all of the end', m: 1030, n: 1026, k: 514, options: { alpha: -0.75, beta: 0.5, bias: true, activation: 'gelu' } },
  { name: 'positive numbers', m: 1024, n: 1024, k: 1000, fillA: 'positive', fillB: 'positive' },
  { name: 'NaN and infinities', m: 1024, n: 1000, k: 1000, more: [5, 700], fillA: at({ 5003: NaN, 700_009: Infinity, 64_000: -Infinity }), fillB: at({ 77: Infinity, 999_500: NaN }) },
  { name: 'numbers of any size', m: 1024, n: 1024, k: 640, fillA: power, fillB: power },
  { name: 'rows of any size', m: 1024, n: 1024, k: 640, fillA: (random, i) => (random() - 0.5) * 10 ** (i % 61 - 30), fillB: (random) => random() * 1e-4 },
  { name: 'a large number that meets zeros', m: 1024, n: 1024, k: 640, fillA: (random, _, p) => (p === 3 ? 1e30 : 1e-20), fillB: (random, p) => (p === 3 ? 0 : 1 + random()) },
  { name: 'large numbers that meet small ones', m: 1024, n: 1024, k: 640, fillA: (random, _, p) => [1e30, 0][p] ?? 1e-12 * random(), fillB: (random, p) => [0, 1e30][p] ?? 1e-13 * random() },
  { name: 'subnormal numbers', m: 1024, n: 1024, k: 640, fillA: { fill: 'uniform', scale: 1e-39 } },
  { name: 'one number a row', m: 1024, n: 1000, k: 1000, fillA: (random, i, p) => (p === i % 1000 ? random() : 0) },
  { name: 'few rows', m: 5, n: 1000, k: 1030, options: { alpha: -0.75, beta: 0.5, bias: true, activation: 'gelu' } },
  { name: 'few rows and long sums', m: 16, n: 300, k: 9001, options: { transB: true } },
  { name: 'few rows with NaN and infinities', m: 12, n: 515, k: 1027, fillA: at({ 5003: NaN, 7009: Infinity, 9: -Infinity }), fillB: at({ 77: Infinity, 400_500: NaN }) },
  { name: 'few rows of numbers of any size', m: 12, n: 515, k: 640, fillA: power, fillB: power },
  { name: 'few rows of subnormal numbers', m: 12, n: 515, k: 640, fillA: { fill: 'uniform', scale: 1e-39 } },
  { name: 'small matrices', m: 130, n: 127, k: 129, batch: 5 },
  { name: 'small matrices of the largest numbers', m: 130, n: 128, k: 128, fillA: (random) => (random() < 0.01 ? 3.4e38 : 1), fillB: (random) => (random() - 0.5) / 8 },
  { name: 'very many rows', m: 6003, n: 60, k: 68, more: [5999, 6000], options: { alpha: -0.75, beta: 0.5, bias: true, activation: 'gelu' } },
  { name: 'very many rows with NaN and infinities', m: 6003, n: 64, k: 100, more: [50, 5990], options: { alpha: 2 }, fillA: at({ 5003: NaN, 599_009: Infinity, 64_000: -Infinity }), fillB: at({ 77: Infinity }) },
];

for (const row of rows) {
  test(`products of ${row.name}`, async () => {
    const { got, want } = await compare(row);
    assert.deepEqual(differences('accumulate', got, want, 'float32'), []);
  });
}

/** Norms of the error of a result and of one float32 multiply-add after the other. */
function norms({ got, want, chain }) {
  const [{ left, right, transB }] = chain;
  const [, count, n] = want.dims;
  const k = want.length;
  let ours = 0;
  let plain = 0;
  for (let i = 0; i < count; i++) {
    for (let j = 0; j < n; j++) {
      let sum = 0;
      for (let p = 0; p < k; p++) sum = Math.fround(sum + left[i * k + p] * (transB ? right[j * k + p] : right[p * n + j]));
      const expected = want.data[i * n + j];
      ours += (got[i * n + j] - expected) ** 2;
      plain += (sum - expected) ** 2;
    }
  }
  return { ours: Math.sqrt(ours), plain: Math.sqrt(plain) };
}

for (const k of [256, 1024]) {
  test(`errors over sums of ${k} are no larger than those of a chain`, async () => {
    const { ours, plain } = norms(await compare({ name: `norms ${k}`, m: 1024, n: 1024, k, fillA: 'normal', options: { transB: true } }));
    assert.ok(ours <= 1.05 * plain, `${ours} against ${plain}`);
  });
}

for (const precision of ['high', 'medium', 'strict']) {
  test(`precision '${precision}' keeps its bound`, async () => {
    const { got, want } = await compare({ name: `precision ${precision}`, m: 1025, n: 1023, k: 705, precision });
    assert.deepEqual(differences(precision === 'strict' ? 'accumulate' : 'eleven', got, want, 'float32'), []);
  });
}

test('the same product gives the same bits', async () => {
  for (const fillA of ['uniform', power]) {
    const { whole, again } = await compare({ name: 'repeats', m: 1024, n: 1030, k: 520, fillA, fillB: fillA });
    for (let run = 0; run < 5; run++) {
      const other = await again();
      assert.equal(Buffer.compare(Buffer.from(whole.buffer), Buffer.from(other.buffer)), 0);
    }
  }
});

/** Weights and what they are multiplied by; the last ones hold numbers that do not suit the tensor cores. */
const inputsOf = (m, k) => [
  filled([m, k], 'uniform', 1),
  filled([m, k], 'normal', 2),
  filled([m, k], at({ 77: NaN, 5000: Infinity }), 3),
  filled([m, k], power, 4),
  filled([m, k], 'uniform', 5),
];

const sameBits = (one, other) => Buffer.compare(Buffer.from(one.buffer), Buffer.from(other.buffer)) === 0;

/** Whether this device keeps what it makes of weights. */
const keeps = () => devices().find(({ id }) => id === `${device}:0` || id === device)?.computeCapability === '9.0';

for (const [what, fill, options] of [
  ['any numbers', 'normal', {}],
  ['numbers that lie along k', 'uniform', { transB: true }],
  ['NaN', at({ 4711: NaN }), {}],
  ['numbers of any size', power, {}],
]) {
  test(`weights of ${what} that meet one input after the other give what new ones give`, async () => {
    const [m, n, k] = [512, 1024, 768];
    const dims = options.transB ? [n, k] : [k, n];
    const data = filled(dims, fill, 6);
    const before = memoryStats(device).prepared;
    const weights = await new Tensor('float32', data, dims).to(device);
    for (const x of inputsOf(m, k)) {
      const input = await new Tensor('float32', x, [m, k]).to(device);
      const fresh = await new Tensor('float32', data, dims).to(device);
      const [kept, made] = await Promise.all([matmul(input, weights, options), matmul(input, fresh, options)]);
      assert.ok(sameBits(await kept.getData(), await made.getData()));
      for (const tensor of [input, fresh, kept, made]) tensor.dispose();
    }
    assert.equal(memoryStats(device).prepared > before, keeps());
    weights.dispose();
    await settled();
    assert.equal(memoryStats(device).prepared, before);
  });
}

/** Waits until calls that have settled let go of what they held. */
const settled = async () => {
  const tiny = await new Tensor('float32', new Float32Array(1), [1]).to(device);
  await tiny.getData();
  tiny.dispose();
};

test('prepared weights go with trimMemory and with the tensor, also while a call runs', async () => {
  const [m, n, k] = [512, 1024, 768];
  const data = filled([k, n], 'normal', 7);
  const weights = await new Tensor('float32', data, [k, n]).to(device);
  const inputs = await Promise.all(inputsOf(m, k).map((x) => new Tensor('float32', x, [m, k]).to(device)));
  const run = async () => {
    const results = await Promise.all(inputs.map((x) => matmul(x, weights)));
    return Promise.all(results.map((result) => result.getData()));
  };
  const first = await run();
  trimMemory(device);
  assert.equal(memoryStats(device).prepared, 0);
  const second = await run();
  // All calls are queued before the weights are disposed of.
  const pending = inputs.map((x) => matmul(x, weights));
  weights.dispose();
  const third = await Promise.all(pending.map(async (call) => (await call).getData()));
  for (const [index, result] of first.entries()) assert.ok(sameBits(result, second[index]) && sameBits(result, third[index]));
  await settled();
  assert.equal(memoryStats(device).prepared, 0);
  for (const tensor of inputs) tensor.dispose();
});
