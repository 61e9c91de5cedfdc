import assert from 'node:assert/strict';
import { test } from 'node:test';
import { matmul } from '../index.mjs';
import { device, onGpu, requireDevice } from './helpers/device.mjs';
import { generator, hash } from './helpers/random.mjs';

/**
 * The errors of float32 products over all kinds of numbers and lengths of sums, against float64 and against one
 * float32 multiply-add after the other. Sizes are those that reach the tensor cores of a GPU, and small on the CPU.
 * Some elements of each result are compared: rows and columns at the edges of tiles, and some between.
 */
test(`the test device ${device} is there`, requireDevice);

const SIDE = onGpu ? 1024 : 96;
const ROWS = [0, 1, 63, 64, 94, 127, 128, 511, 640, 1000, SIDE - 1].filter((row) => row < SIDE);
const COLUMNS = Array.from({ length: SIDE }, (_, at) => at).filter((at) => !onGpu || at % 9 === 0 || at % 64 > 62);

const normal = (random) => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
const sign = (random) => (random() < 0.5 ? -1 : 1);

/** name: [element of A at row i and term p, element of B at term p and column j], and whether sums have no one large term. */
const INPUTS = {
  'uniform signed': { a: (r) => 2 * r() - 1, dense: true },
  'uniform positive': { a: (r) => r(), dense: true },
  normal: { a: normal, dense: true },
  'lognormal of sigma 1': { a: (r) => Math.exp(normal(r)) },
  'lognormal of sigma 4': { a: (r) => Math.exp(4 * normal(r)) },
  'exponents of +-30': { a: (r) => sign(r) * 2 ** (60 * r() - 30) },
  'rows scaled by 1e+-30': { a: (r, i) => normal(r) * 10 ** (((i * 7) % 61) - 30), b: (r) => normal(r) * 1e-4, dense: true },
  'columns scaled by 1e+-15': { a: (r) => normal(r), b: (r, p, j) => normal(r) * 10 ** (((j * 5) % 31) - 15), dense: true },
  'one number a row': { a: (r, i, k, p) => (p === (i * 37) % k ? normal(r) : 0), b: normal },
  'one huge number against zeros': { a: (r, i, k, p) => (p === 3 % k ? 1e30 : 1e-6 * normal(r)), b: (r, p, j, k) => (p === 3 % k ? 0 : normal(r)) },
  'a large number that meets a small one': { a: (r, i, k, p) => (p === 1 % k ? 1e6 : 1e-6 * normal(r)), b: (r, p, j, k) => (p === 1 % k ? 1e-12 : normal(r)) },
  subnormal: { a: (r) => 2 ** -129 * normal(r), b: normal },
  'largest numbers': { a: (r) => 3.4e38 * sign(r) * (r() < 0.01 ? 1 : 0), b: (r) => 1e-3 * normal(r) },
};

/** Both operands, float32. @param {string} name @param {number} k */
function operands(name, k) {
  const { a, b = (random) => a(random, 0, k, 0) } = INPUTS[name];
  const [left, right] = [new Float32Array(SIDE * k), new Float32Array(k * SIDE)];
  const [randomA, randomB] = [generator(hash(`${name} ${k}`)), generator(hash(`${k} ${name}`))];
  for (let i = 0; i < SIDE; i++) for (let p = 0; p < k; p++) left[i * k + p] = a(randomA, i, k, p);
  for (let p = 0; p < k; p++) for (let j = 0; j < SIDE; j++) right[p * SIDE + j] = b(randomB, p, j, k);
  return { left, right };
}

/** One multiply-add after the other. A product of two float32 numbers is exact in float64. */
const chained = (sum, x, y) => Math.fround(sum + x * y);

/** The sum of a tensor core that is never moved to a float32 register: 16 products at a time, cut off. */
function truncated(terms) {
  let sum = 0;
  for (let p = 0; p < terms.length; p += 16) {
    const exact = terms.slice(p, p + 16).reduce((total, term) => total + term, sum);
    sum = Math.fround(exact);
    if (Math.abs(sum) > Math.abs(exact)) sum = Math.fround(exact * (1 - 2 ** -24));
  }
  return sum;
}

/**
 * What came against float64, errors beside the magnitudes summed: their norms for the result (`ours`) and the chain
 * (`plain`), and the largest of either. @param {(sum: (i: number, j: number) => number)} result
 */
function errors({ left, right }, k, result) {
  const found = { ours: 0, plain: 0, most: 0, mostPlain: 0 };
  for (const i of ROWS) {
    for (const j of COLUMNS) {
      let [exact, size, sum] = [0, 0, 0];
      for (let p = 0; p < k; p++) {
        const [x, y] = [left[i * k + p], right[p * SIDE + j]];
        exact += x * y;
        size += Math.abs(x * y);
        sum = chained(sum, x, y);
      }
      const [error, plain] = [Math.abs(result(i, j) - exact), Math.abs(sum - exact)];
      // Half a unit of the smallest subnormal number is no error of the sum.
      const beside = (value) => Math.max(0, value - 2 ** -150) / (size || 1);
      found.ours = Math.hypot(found.ours, beside(error));
      found.plain = Math.hypot(found.plain, beside(plain));
      found.most = Math.max(found.most, beside(error));
      found.mostPlain = Math.max(found.mostPlain, beside(plain));
    }
  }
  return found;
}

/** Reasons to refuse a result; none where it keeps the promise of 'highest'. */
function verdict({ ours, plain, most, mostPlain }, { k, dense }) {
  const reasons = [];
  // Norms over some 800 elements scatter by 3 %.
  if (dense && k >= 256 && ours > 1.1 * plain) reasons.push(`norm of the error ${ours}, of a chain's ${plain}`);
  const allowed = Math.max(2 ** -20, 1.25 * mostPlain);
  if (!(most <= allowed)) reasons.push(`an error of ${most} of the magnitudes, allowed are ${allowed}`);
  return reasons;
}

const LENGTHS = [1, 7, 64, 65, 1000, 4096];
const all = Object.keys(INPUTS).flatMap((name) => LENGTHS.map((k) => ({ name, k })));
for (const { name, k } of [...all, { name: 'normal', k: 16_384 }, { name: 'uniform positive', k: 16_384 }]) {
  test(`sums of ${k}: ${name}`, async () => {
    const { left, right } = operands(name, k);
    const got = await matmul(left, right, { dims: [[SIDE, k], [k, SIDE]], device });
    const found = errors({ left, right }, k, (i, j) => got[i * SIDE + j]);
    assert.deepEqual(verdict(found, { k, dense: INPUTS[name].dense }), []);
  });
}

test('an accumulator that stays in the tensor core would be refused', () => {
  const k = 4096;
  const { left, right } = operands('normal', k);
  const terms = (i, j) => Array.from({ length: k }, (_, p) => left[i * k + p] * right[p * SIDE + j]);
  const found = errors({ left, right }, k, (i, j) => truncated(terms(i, j)));
  assert.equal(verdict(found, { k, dense: true }).length, 1, JSON.stringify(found));
});

test('short sums are chains: a matrix times the identity is the matrix', async () => {
  for (const k of [1, 5, 32, 63]) {
    const { left } = operands('exponents of +-30', k);
    const identity = Float32Array.from({ length: k * k }, (_, at) => (Math.floor(at / k) === at % k ? 1 : 0));
    const got = await matmul(left, identity, { dims: [[SIDE, k], [k, k]], device });
    assert.deepEqual(Buffer.compare(Buffer.from(got.buffer), Buffer.from(left.buffer)), 0, `k ${k}`);
  }
});

/** NaN, Infinity, -Infinity or finite. */
const classOf = (value) => (Number.isFinite(value) ? 'finite' : String(value));

test('classes are those of a chain, wherever NaN and infinities stand', async () => {
  const k = 200;
  const positions = [0, 15, 16, 63, 64, 127, 128, k - 1];
  const values = [NaN, Infinity, -Infinity, 3.4028234663852886e38, 0];
  const { left, right } = operands('normal', k);
  // Row i of A has one of the values at one of the positions, column j of B another: they meet in all combinations.
  const put = (array, at, index) => {
    array[at] = values[index % values.length];
  };
  for (let i = 0; i < SIDE; i++) put(left, i * k + positions[i % positions.length], Math.floor(i / positions.length));
  for (let j = 0; j < SIDE; j++) put(right, positions[j % positions.length] * SIDE + j, Math.floor(j / positions.length) + 1);
  const got = await matmul(left, right, { dims: [[SIDE, k], [k, SIDE]], device });
  const wrong = [];
  for (let i = 0; i < SIDE; i++) {
    for (let j = 0; j < Math.min(SIDE, 120); j++) {
      let sum = 0;
      for (let p = 0; p < k; p++) sum = chained(sum, left[i * k + p], right[p * SIDE + j]);
      const came = got[i * SIDE + j];
      if (classOf(came) !== classOf(sum)) wrong.push(`[${i}, ${j}]: ${came}, a chain gives ${sum}`);
    }
  }
  assert.deepEqual(wrong.slice(0, 3), []);
});

test('the same product gives the same bits a hundred times', async () => {
  const k = 520;
  for (const name of ['normal', 'a large number that meets a small one']) {
    const { left, right } = operands(name, k);
    const run = () => matmul(left, right, { dims: [[SIDE, k], [k, SIDE]], device });
    const first = Buffer.from((await run()).buffer);
    for (let round = 1; round < 100; round++) {
      assert.equal(Buffer.compare(first, Buffer.from((await run()).buffer)), 0, `${name}, round ${round}`);
    }
  }
});
