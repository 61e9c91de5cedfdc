// Conformance cases of ONNX, the smallest for each operator, version of its set and types of inputs (npm run test:onnx runs all): on the CPU, and
// on a GPU with every step there but for those that have a form on the host alone.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { InferenceSession, Tensor } from '../index.mjs';
import internal from '../lib/internal.js';
import { operators } from '../scripts/proto.mjs';
import { listed, unpack } from './helpers/conformance.mjs';
import { device, onGpu, requireDevice } from './helpers/device.mjs';
import { root } from './helpers/process.mjs';
import { load } from './helpers/types.mjs';

test(`the test device ${device} is there`, requireDevice);

const cases = unpack(readFileSync(join(root, '__test__/onnx/subset.bin')));
const hostOnly = listed(readFileSync(join(root, '__test__/onnx/host-only.txt'), 'utf8'));
const table = internal.operatorTable();
const arrays = Object.fromEntries(internal.dtypeTable().map(({ name, array }) => [name, array]));

/** Elements as an array of their type. */
function arrayOf({ type, bytes }) {
  const Type = globalThis[arrays[type]];
  return new Type(bytes.buffer, bytes.byteOffset, bytes.length / Type.BYTES_PER_ELEMENT);
}

const numbers = (array, type) => (typeof array[0] === 'bigint' ? [...array].map(Number) : [...load(array, type)]);

/** What is wrong with a result, by the tolerance of ONNX's own runner. */
function difference(got, want) {
  if (got.type !== want.type || String(got.dims) !== String(want.dims)) return [`is ${got.type} [${got.dims}], expected ${want.type} [${want.dims}]`];
  const [results, wanted] = [numbers(got.data, got.type), numbers(arrayOf(want), want.type)];
  const at = results.findIndex((value, i) => !Object.is(value, wanted[i]) && value !== wanted[i] && !(Math.abs(value - wanted[i]) <= 1e-7 + 1e-3 * Math.abs(wanted[i])));
  return at < 0 ? [] : [`element ${at} is ${results[at]}, expected ${wanted[at]}`];
}

/** What is wrong with a case. */
async function problems({ name, model, inputs, outputs }) {
  const onHost = onGpu && hostOnly.has(name);
  const session = await InferenceSession.create(model, { device: onHost ? 'auto' : device });
  const feeds = Object.fromEntries(session.inputNames.map((input, i) => [input, new Tensor(inputs[i].type, arrayOf(inputs[i]), inputs[i].dims)]));
  const results = await session.run(feeds);
  const wrong = session.outputNames.flatMap((output, i) => difference(results[output], outputs[i]));
  const steps = onHost ? await session.profile(feeds) : [];
  if (onHost && !steps.some((step) => step.device === 'cpu' && step.op === hostOnly.get(name))) wrong.push(`'${hostOnly.get(name)}' is not placed on the CPU`);
  for (const { node, device: place } of steps) {
    const operator = table.find((row) => node.includes(`(${row.domain ? `${row.domain}.` : ''}${row.name})`));
    if (place === 'cpu' && operator.host === undefined) wrong.push(`${node} ran on the host, against docs/model-support.md`);
  }
  await session.release();
  return wrong.map((text) => `${name}: ${text}`);
}

test(`conformance cases of ONNX on ${device}`, async () => {
  const lines = [];
  for (const one of cases) lines.push(...(await problems(one).catch((error) => [`${one.name}: ${error.code} ${error.message}`])));
  assert.deepEqual(lines, []);
});

/** Operators of a later set than the suite has, or that it has no case of. */
const WITHOUT_CASE = ['CumProd', 'GlobalLpPool'];

test('every operator has a case, and those of the host are the cases of the host', () => {
  const found = new Set(cases.flatMap(({ model }) => operators(model)));
  const names = table.map(({ name, domain }) => (domain ? `${domain}.${name}` : name));
  assert.deepEqual(names.filter((name) => !found.has(name)), WITHOUT_CASE);
  const always = new Set(table.filter(({ host }) => host === '').map(({ name }) => name));
  const here = cases.filter(({ model }) => operators(model).some((name) => always.has(name))).map(({ name }) => name);
  assert.deepEqual(here.filter((name) => !hostOnly.has(name)), []);
  assert.ok(here.length > 0);
});
