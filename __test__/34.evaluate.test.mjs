// Expressions beside the ops that they are made of, and texts that are none.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as warpwright from '../index.mjs';
import internal from '../lib/internal.js';
import { device, requireDevice } from './helpers/device.mjs';
import { rejects } from './helpers/errors.mjs';
import { fillArray, generator, hash } from './helpers/random.mjs';
import { arrayOf, store } from './helpers/types.mjs';

const { Tensor, evaluate } = warpwright;

test(`the test device ${device} is there`, requireDevice);

const UNARY = internal.opTable().filter(({ operands }) => operands.length === 1 && operands[0].name === 'x').map(({ name }) => name)
  .filter((name) => ['relu', 'leakyRelu', 'elu', 'selu', 'sigmoid', 'tanh', 'gelu', 'silu', 'hardSigmoid', 'hardSwish', 'softplus', 'mish', 'clip',
    'exp', 'log', 'sqrt', 'erf', 'abs', 'neg', 'sin', 'cos', 'floor', 'ceil', 'round', 'sign', 'reciprocal'].includes(name));
const BINARY = { '+': 'add', '-': 'sub', '*': 'mul', '/': 'div', '**': 'pow', max: 'max', min: 'min' };

/** Options of some ops, in an expression and in a call. */
const OPTIONS = {
  leakyRelu: [', 0.25', { alpha: 0.25 }], clip: [', -0.5, 2', { min: -0.5, max: 2 }], gelu: [", 'tanh'", { approximate: 'tanh' }],
  selu: [', gamma=2', { gamma: 2 }], hardSigmoid: [', beta = 1/4', { beta: 0.25 }], elu: [', 0.5', { alpha: 0.5 }],
};

const pick = (random, list) => list[Math.floor(random() * list.length)];

/** A random expression: its text, and the calls that it stands for. */
function grow(random, names, depth) {
  if (depth === 0) {
    const name = pick(random, names);
    return { text: name, run: async (operands) => operands[name] };
  }
  const left = grow(random, names, depth - 1);
  if (random() < 0.45) {
    const op = pick(random, UNARY);
    const [text, options] = random() < 0.5 ? (OPTIONS[op] ?? ['', {}]) : ['', {}];
    return { text: `${op}(${left.text}${text})`, run: async (operands) => warpwright[op](await left.run(operands), { ...options, device }) };
  }
  const sign = pick(random, Object.keys(BINARY));
  const number = random() < 0.25 ? pick(random, [0.5, 2, 3, 0.1]) : undefined;
  const right = number === undefined ? grow(random, names, depth - 1) : { text: String(number), run: async ({ of }) => of(number) };
  const text = sign in warpwright ? `${sign}(${left.text}, ${right.text})` : `(${left.text} ${sign} ${right.text})`;
  return { text, run: async (operands) => warpwright[BINARY[sign]](await left.run(operands), await right.run(operands), { device }) };
}

/** Dims of the operands a, b and c. */
const SHAPES = [[[257], [257], [257]], [[12, 20], [20], [12, 1]], [[12, 20], [20], []], [[5, 7], [7], [5, 1]], [[2, 3, 16], [3, 1], [2, 1, 16]], [[1031], [1], [1031]]];

function bitsOf({ type, data }) {
  const words = type === 'float64' ? BigUint64Array : type === 'float32' ? Uint32Array : Uint16Array;
  const numbers = type.includes('loat16') ? undefined : data;
  return Array.from(new words(data.buffer, data.byteOffset, data.length), (word, i) => (numbers && Number.isNaN(numbers[i]) ? 'NaN' : word));
}

function operandsOf(type, shapes, seed, fill) {
  const make = (dims, i) => {
    const length = dims.reduce((product, dim) => product * dim, 1);
    return new Tensor(type, store(arrayOf(type, length), fillArray(new Float64Array(length), fill, seed + i, type), type), dims);
  };
  return Object.fromEntries(shapes.map((dims, i) => ['abc'[i], make(dims, i)]));
}

const used = (text, operands) => Object.fromEntries(Object.entries(operands).filter(([name]) => new RegExp(`\\b${name}\\b`).test(text)));

for (const type of ['float32', 'float64']) {
  test(`random expressions of ${type} have the bits of the same ops one by one`, async () => {
    const random = generator(hash(`expressions of ${type}`));
    for (let round = 0; round < 60; round++) {
      const expression = grow(random, ['a', 'b', 'c'], 1 + Math.floor(random() * 4));
      const operands = used(expression.text, operandsOf(type, pick(random, SHAPES), round * 10, pick(random, ['normal', 'positive', 'specials'])));
      const of = (number) => new Tensor(type, store(arrayOf(type, 1), [number], type), []);
      const [fused, single] = [await evaluate(expression.text, operands, { device }), await expression.run({ ...operands, of })];
      assert.deepEqual(fused.dims, single.dims, expression.text);
      assert.deepEqual(bitsOf(fused), bitsOf(single), `${expression.text} of ${JSON.stringify(Object.values(operands).map(({ dims }) => dims))}`);
    }
  });
}

test('16 bits are computed with in float32 and rounded once', async () => {
  const text = 'silu(a * b + c) * (a - 0.1) / (b + 3)';
  for (const type of ['float16', 'bfloat16']) {
    for (const shapes of SHAPES) {
      const operands = operandsOf(type, shapes, 7, 'normal');
      const wide = {};
      for (const [name, operand] of Object.entries(operands)) wide[name] = await operand.to('float32');
      const once = await (await evaluate(text, wide, { device })).to(type);
      assert.deepEqual(bitsOf(await evaluate(text, operands, { device })), bitsOf(once), `${type} of ${JSON.stringify(shapes)}`);
    }
  }
});

test('numbers that differ give results that differ', async () => {
  const a = new Float32Array([1, 2]);
  assert.deepEqual([...await evaluate('a * 2 + 1', { a }, { device })], [3, 5]);
  assert.deepEqual([...await evaluate('a * 3 + 4', { a }, { device })], [7, 10]);
  assert.deepEqual([...await evaluate('a * 2 + 2', { a }, { device })], [4, 6]);
});

const a = new Float32Array(2);
const rows = [
  ['no expression', () => evaluate(), 'INVALID_ARGUMENT', 'expression', 'undefined'],
  ['an expression that is none', () => evaluate(5, { a }, { device }), 'INVALID_ARGUMENT', 'expression', '5'],
  ['no operands', () => evaluate('a'), 'INVALID_ARGUMENT', 'inputs', 'undefined'],
  ['a bare array', () => evaluate('a', a, { device }), 'INVALID_ARGUMENT', 'inputs', 'Float32Array'],
  ['a list', () => evaluate('a', [a], { device }), 'INVALID_ARGUMENT', 'inputs'],
  ['an empty object', () => evaluate('1', {}, { device }), 'INVALID_ARGUMENT', 'inputs'],
  ['an operand that is none', () => evaluate('a', { a: 5 }, { device }), 'INVALID_ARGUMENT', "'a'", '5'],
  ['an operand that does not occur', () => evaluate('a', { a, b: a }, { device }), 'INVALID_ARGUMENT', "'b'"],
  ['a name that is none', () => evaluate('a', { a, 'b c': a }, { device }), 'INVALID_ARGUMENT', 'b c'],
  ['two element types', () => evaluate('a + b', { a, b: new Float64Array(2) }, { device }), 'INVALID_ARGUMENT', "'a' is float32", "'b'", 'float64'],
  ['an integer type', () => evaluate('a', { a: new Int32Array(2) }, { device }), 'UNSUPPORTED_DTYPE', "'a'", 'int32'],
  ['dims that do not broadcast', () => evaluate('a + b', { a, b: new Float32Array(3) }, { device }), 'SHAPE_MISMATCH', "'b'", '[3]', '[2]'],
  ['dims of an operand that is not there', () => evaluate('a', { a }, { device, dims: { b: [2] } }), 'INVALID_ARGUMENT', 'dims', "'b'"],
  ['dims in a list', () => evaluate('a', { a }, { device, dims: [2] }), 'INVALID_ARGUMENT', 'dims', 'object'],
  ['an option that is a part of the call', () => evaluate('a', { a }, { device, names: ['a'] }), 'INVALID_ARGUMENT', 'names'],
  ['an unknown option', () => evaluate('a', { a }, { devise: 'cpu' }), 'INVALID_ARGUMENT', 'devise', 'device'],
  ['an argument too many', () => evaluate('a', { a }, { device }, 1), 'INVALID_ARGUMENT', '4'],
  ['an operand without a name', () => evaluate('a +', { a }, { device }), 'INVALID_ARGUMENT', 'position 3', 'the end'],
  ['a misspelt function', () => evaluate('gellu(a)', { a }, { device }), 'INVALID_ARGUMENT', 'gellu', "'gelu'"],
  ['a property of objects', () => evaluate('constructor(a) + toString', { a }, { device }), 'INVALID_ARGUMENT', 'constructor'],
];

test('wrong arguments are named', async (t) => {
  for (const [name, call, code, ...words] of rows) await t.test(name, () => rejects(call, code, 'evaluate', ...words));
  assert.deepEqual([...await evaluate('a + 1', { a }, { device })], [1, 1]);
});

test('texts that are no expressions are refused', async () => {
  const hostile = [
    '', ' ', '\0', 'a\0', '(((((', ')))))', 'a a', 'a(a)', '1e', '1e+', '.', '1..2', "'a'", '"', 'relu', 'relu(', 'relu()', 'relu(a,,)', 'relu(a)(a)', '= a',
    'a = 1', 'a;b', 'a ? 1 : 2', 'a[0]', 'a.b', 'a // b', 'a % 2', 'a & a', '${a}', '__proto__', 'a\u00a0+\u2028', '\ud800', 'ａ', '1', 'pi', 'max(1, 2)',
    'a'.repeat(9000), '('.repeat(9999), '-'.repeat(9999), `${'a**'.repeat(3000)}a`, `${'a+'.repeat(6000)}a`, 'sin('.repeat(2000), '1'.repeat(9999) + 'x',
    Array.from({ length: 200 }, (_, i) => `a*${i}`).join('+'), `${'relu('.repeat(99)}${'exp(a)'}${')'.repeat(98)}`,
  ];
  for (const text of hostile) await rejects(() => evaluate(text, { a }, { device }), 'INVALID_ARGUMENT', 'evaluate');
});

test('random texts give a result or a reason', async () => {
  const random = generator(hash('texts'));
  const parts = ['a', 'b', '1', '.5', '+', '-', '**', '(', ')', ',', '<', '&&', '!', 'relu(', "'tanh'", 'alpha', '=', ' '];
  const outcomes = { results: 0, errors: 0 };
  for (let round = 0; round < 1000; round++) {
    const { text } = grow(random, ['a', 'b'], 1 + Math.floor(random() * 3));
    const at = Math.floor(random() * text.length);
    const spoilt = text.slice(0, at) + (random() < 0.5 ? pick(random, parts) : '') + text.slice(at + Math.floor(random() * 2));
    try {
      const result = await evaluate(spoilt, used(spoilt, { a, b: a }), { device: 'cpu' });
      assert.equal(result.length, 2, spoilt);
      outcomes.results++;
    } catch (error) {
      assert.equal(error.code, 'INVALID_ARGUMENT', `${spoilt}: ${error.stack}`);
      outcomes.errors++;
    }
  }
  assert.ok(outcomes.results > 50 && outcomes.errors > 50, JSON.stringify(outcomes));
});
