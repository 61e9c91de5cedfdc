import * as warpwright from '../../index.mjs';
import internal from '../../lib/internal.js';
import { sizeOf } from '../oracle/array.mjs';
import { oracle } from '../oracle/index.mjs';
import { device, location, onGpu } from './device.mjs';
import { fillArray, fillBits, hash } from './random.mjs';
import { differences, unequal } from './tolerance.mjs';
import { arrayOf, formats, load, store } from './types.mjs';

const GUARD = 6.5;

/**
 * A typed array for one operand. It is a view into a larger one, at an offset that breaks every alignment
 * wider than the element's where the case asks for it, with guard values round it.
 */
function operand(spec, seed, given) {
  const dtype = spec.type ?? given;
  const length = sizeOf(spec.dims);
  const offset = spec.offset ?? 0;
  const whole = arrayOf(dtype, length + 2 * offset);
  store(whole, new Float64Array(whole.length).fill(GUARD), dtype);
  const view = whole.subarray(offset, offset + length);
  if (spec.fill === 'bits') fillBits(view, seed, dtype);
  else store(view, fillArray(new Float64Array(length), spec.fill ?? 'normal', seed, dtype), dtype);
  return { view, whole, before: whole.slice(), dims: spec.dims, dtype };
}

function build(testCase, dtype) {
  const seed = hash(`${testCase.op} ${testCase.name} ${dtype}`);
  const inputs = testCase.inputs.map((spec, i) => operand(spec, seed + i, dtype));
  const named = {};
  Object.entries(testCase.named ?? {}).forEach(([name, spec], i) => {
    named[name] = operand(spec, seed + 100 + i, dtype);
  });
  return { inputs, named };
}

function expected(testCase, inputs, named) {
  const asNdArray = ({ view, dims, dtype }) => ({ data: load(view, dtype), view, dims, dtype });
  const options = { ...testCase.options, ...testCase.attributes, of: testCase.of };
  for (const [name, value] of Object.entries(named)) options[name] = asNdArray(value);
  return [oracle[testCase.as ?? testCase.op](inputs.map(asNdArray), options)].flat();
}

const mapValues = (object, change) =>
  Object.fromEntries(Object.entries(object).map(([key, value]) => [key, change(value)]));

const rowOf = (op) => internal.opTable().find((row) => row.name === op);

const byName = (names, values) => Object.fromEntries(names.map((name, i) => [name, values[i]]));

/** Arguments of a call: a list where the op takes one, a text and an object where operands have names. */
function argumentsOf({ op, text, names }, values) {
  if (names) return [text, byName(names, values)];
  return rowOf(op).operands[0].list ? [values] : values;
}

/** One shape per operand in the order of the table, or by name; operands given as options come last and may be left out. */
function shapes({ op, names }, inputs, named) {
  if (names) return byName(names, inputs.map((o) => o.dims));
  const optional = rowOf(op).operands.filter((row) => !row.required);
  return [...inputs.map((o) => o.dims), ...optional.map((row) => named[row.name]?.dims)];
}

/** The element type of a case's result. */
const typeOfResult = ({ op, options }, dtype, index = 0) =>
  options.to ?? options.outputType ?? rowOf(op).resultType ?? rowOf(op).results[index]?.dtype ?? dtype;

/** What an array of results may be: numbers of 16 bits are bits, or numbers where the engine has an array for them. */
function isArrayOf(dtype, result, bitsGiven) {
  if (dtype === 'float16' && !bitsGiven && globalThis.Float16Array) return result instanceof globalThis.Float16Array;
  return result?.constructor === arrayOf(dtype, 0).constructor;
}

/** Typed arrays in, typed arrays out. */
async function runArrays(testCase, dtype, { inputs, named }) {
  const options = { ...testCase.options, ...mapValues(named, (o) => o.view), device };
  if (formats[dtype].bits || dtype === 'bool') options.type = dtype;
  if (!testCase.noDims) options.dims = shapes(testCase, inputs, named);
  const results = await warpwright[testCase.op](...argumentsOf(testCase, inputs.map((o) => o.view)), options);
  return [results].flat().map((result, index) => {
    const problems = [];
    if (!isArrayOf(typeOfResult(testCase, dtype, index), result, dtype === 'float16')) problems.push(`gives a ${result?.constructor?.name}`);
    if (inputs.some((o) => o.whole.buffer === result.buffer && result.length > 0)) problems.push('gives the memory of an input');
    return { data: result, problems };
  });
}

/** Host tensors in, host tensor out. */
async function runTensors(testCase, dtype, { inputs, named }) {
  const wrap = (o) => new warpwright.Tensor(o.dtype, o.view, o.dims);
  const options = { ...testCase.options, ...mapValues(named, wrap), device };
  const results = await warpwright[testCase.op](...argumentsOf(testCase, inputs.map(wrap)), options);
  const check = (result, index) => describe(result, typeOfResult(testCase, dtype, index), 'cpu');
  return [results].flat().map((result, index) => ({ data: result.data, dims: result.dims, problems: check(result, index) }));
}

/** GPU tensors in, GPU tensor out, read back at the end. */
async function runResident(testCase, dtype, { inputs, named }) {
  const moved = [];
  const move = async (o) => {
    const tensor = await new warpwright.Tensor(o.dtype, o.view, o.dims).to(location);
    moved.push(tensor);
    return tensor;
  };
  const operands = [];
  for (const input of inputs) operands.push(await move(input));
  const options = { ...testCase.options };
  for (const [name, value] of Object.entries(named)) options[name] = await move(value);
  const results = [await warpwright[testCase.op](...argumentsOf(testCase, operands), options)].flat();
  const read = [];
  for (const [index, result] of results.entries()) {
    const problems = describe(result, typeOfResult(testCase, dtype, index), location);
    read.push({ data: await result.getData(), dims: result.dims, problems });
  }
  for (const tensor of [...moved, ...results]) tensor.dispose();
  return read;
}

function describe(tensor, dtype, where) {
  const problems = [];
  if (!(tensor instanceof warpwright.Tensor)) problems.push('gives no Tensor');
  if (tensor.type !== dtype) problems.push(`gives type ${tensor.type}`);
  if (tensor.location !== where) problems.push(`gives a tensor on ${tensor.location}, expected ${where}`);
  return problems;
}

function sameBytes(a, b) {
  return Buffer.compare(
    Buffer.from(a.buffer, a.byteOffset, a.byteLength),
    Buffer.from(b.buffer, b.byteOffset, b.byteLength),
  ) === 0;
}

const forms = { arrays: runArrays, tensors: runTensors, ...(onGpu ? { resident: runResident } : {}) };

/** Runs one case in one form; returns what is wrong with it. */
async function runForm(form, testCase, level, dtype) {
  const built = build(testCase, dtype);
  const wanted = expected(testCase, built.inputs, built.named);
  let results;
  try {
    results = await forms[form](testCase, dtype, built);
  } catch (error) {
    return [`failed: ${error?.code ?? ''} ${error?.message ?? error}`];
  }
  const problems = results.length === wanted.length ? [] : [`gives ${results.length} results, expected ${wanted.length}`];
  results.slice(0, wanted.length).forEach((got, index) => {
    const want = wanted[index];
    const type = typeOfResult(testCase, dtype, index);
    problems.push(...got.problems);
    if (got.dims && String(got.dims) !== String(want.dims)) {
      problems.push(`has dims [${got.dims}], expected [${want.dims}]`);
    }
    problems.push(...(want.exactly ? unequal(got.data, want) : differences(level, load(got.data, type), want, type)));
  });
  for (const o of [...built.inputs, ...Object.values(built.named)]) {
    if (!sameBytes(o.whole, o.before)) problems.push('an input or the memory beside it was written');
  }
  return problems;
}

/** Floats that an op takes. */
const floatsOf = (op) => rowOf(op).dtypes.filter((name) => 'max' in formats[name]);

/** Forms of a case in one type; one of them, by the case's name, where it says so and for types of 16 bits, which share their code. */
function formsOf(testCase, dtype) {
  const fitting = Object.keys(forms).filter((form) => !testCase.forms || testCase.forms.includes(form));
  if (!formats[dtype].bits && !testCase.oneForm) return fitting;
  return [fitting[hash(`${testCase.op} ${testCase.name} ${dtype}`) % fitting.length]];
}

/**
 * Runs cases and returns one line per failing case, element type and form.
 * @param {object[]} cases  rows of the case table
 * @param {string} level  tolerance level of the op
 */
export async function failures(cases, level) {
  const lines = [];
  for (const testCase of cases) {
    for (const dtype of testCase.dtypes ?? floatsOf(testCase.op)) {
      for (const form of formsOf(testCase, dtype)) {
        const problems = await runForm(form, testCase, testCase.level ?? level, dtype);
        if (problems.length > 0) {
          lines.push(`${testCase.op} '${testCase.name}', ${dtype}, ${form}: ${problems.join('; ')}`);
        }
      }
    }
  }
  return lines;
}

/** Throws one error that lists every failing case. */
export function assertNone(lines, total) {
  if (lines.length === 0) return;
  const shown = lines.slice(0, 60);
  if (lines.length > shown.length) shown.push(`... and ${lines.length - shown.length} more`);
  throw new Error(`${lines.length} failures over ${total} cases:\n  ${shown.join('\n  ')}`);
}
