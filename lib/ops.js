'use strict';

const { bridge, run, checkSignal } = require('./bridge.js');
const { shapeList } = require('./dims.js');
const { bytesOf, elementsOf, isTypedArray, typeOf } = require('./dtypes.js');
const { describe, guard, invalid } = require('./errors.js');
const native = require('./load.js');
const { Tensor, viewOf, wrapOutput } = require('./tensor.js');

/**
 * @typedef {import('../native.js').OpRow} OpRow
 * @typedef {import('../native.js').InputArg} InputArg
 * @typedef {import('./dtypes.js').TypedArray} TypedArray
 * @typedef {{ inputs: (InputArg | undefined)[], attributes: object, device: string, signal?: AbortSignal,
 *   transfer: boolean, values: unknown[] }} Prepared
 */

/** The op table of the native side. */
const TABLE = native.opTable();

/**
 * Splits operands and options of a call and checks what the native side does not see.
 * @param {OpRow} row
 * @param {unknown[]} args
 * @returns {Prepared}
 */
function prepare(row, args) {
  if (operandsHaveNames(row)) return prepareNamed(row, args);
  return prepareOperands(row, args);
}

/** @param {OpRow} row */
const operandsHaveNames = ({ operands }) => operands[0]?.named === true;

/**
 * The same for an op whose operands come in an object, behind a text: (text, { name: operand }, options).
 * @param {OpRow} row
 * @param {unknown[]} args
 * @returns {Prepared}
 */
function prepareNamed(row, args) {
  const { name, operands: [operand], attributes } = row;
  const [text, given, options = {}, ...more] = args;
  const texts = attributes.filter(({ kind }) => kind === 'string');
  if (more.length > 0) throw invalid(`${name}: takes '${texts[0].name}', '${operand.name}' and options, got ${args.length} arguments`);
  if (typeof text !== 'string') throw invalid(`${name}: '${texts[0].name}' must be a string, got ${describe(text)}`);
  if (!isRecord(given)) throw invalid(`${name}: '${operand.name}' must be an object of typed arrays or Tensors, got ${describe(given)}`);
  if (!isRecord(options)) throw invalid(`${name}: options must be an object, got ${describe(options)}`);
  const names = Object.keys(given);
  const { dims, ...others } = options;
  if (texts[0].name in others || 'names' in others) throw invalid(`${name}: unknown option '${texts[0].name in others ? texts[0].name : 'names'}'`);
  const shapes = dims === undefined || dims === null ? undefined : shapesByName(name, dims, names);
  return prepareOperands(row, [Object.values(given), { ...others, [texts[0].name]: text, names, dims: shapes }], names);
}

/** @param {unknown} value @returns {value is Record<string, any>} */
const isRecord = (value) => typeof value === 'object' && value !== null && !Array.isArray(value) && !isTypedArray(value) && !(value instanceof Tensor);

/**
 * A shape for each name, in order.
 * @param {string} op
 * @param {unknown} dims
 * @param {string[]} names
 */
function shapesByName(op, dims, names) {
  if (!isRecord(dims)) throw invalid(`${op}: 'dims' must be an object of shapes, got ${describe(dims)}`);
  const unknown = Object.keys(dims).find((name) => !names.includes(name));
  if (unknown !== undefined) throw invalid(`${op}: 'dims' names '${unknown}', which is no operand`);
  return names.map((name) => dims[name]);
}

/**
 * @param {OpRow} row
 * @param {unknown[]} args
 * @param {string[]} [names] of the items of a list
 * @returns {Prepared}
 */
function prepareOperands(row, args, names) {
  const { name, operands } = row;
  const required = operands.filter((operand) => operand.required);
  if (args.length > required.length + 1) {
    throw invalid(`${name}: takes ${required.length} operands and options, got ${args.length} arguments`);
  }
  const given = args[required.length] ?? {};
  if (typeof given !== 'object' || Array.isArray(given) || isTypedArray(given) || given instanceof Tensor) {
    throw invalid(`${name}: options must be an object, got ${describe(given)}`);
  }
  const { dims, device, signal, transfer, type, ...attributes } = /** @type {Record<string, any>} */ (given);
  checkCommon(name, { device, transfer });
  const items = operands[0]?.list ? itemsOf(name, operands[0], args[0]) : undefined;
  const values = items ?? operands.map((operand, index) => (operand.required ? args[index] : attributes[operand.name]));
  const rows = items ? items.map((_, index) => (names ? { ...operands[0], name: names[index] } : operands[0])) : operands;
  const shapes = shapeList(name, dims, items?.length ?? required.length, rows.length);
  for (const operand of operands) if (!operand.required) delete attributes[operand.name];
  const inputs = rows.map((operand, index) => input(name, operand, values[index], shapes[index], typeGiven(row, operand, type, values[index])));
  return {
    inputs,
    attributes,
    device: device ?? 'auto',
    signal: checkSignal(name, signal),
    transfer: transfer === true,
    values,
  };
}

/**
 * The items of an operand that is a list.
 * @param {string} op
 * @param {import('../native.js').OperandRow} operand
 * @param {unknown} value
 * @returns {unknown[]}
 */
function itemsOf(op, operand, value) {
  if (Array.isArray(value)) return [...value];
  throw invalid(`${op}: '${operand.name}' must be a list of typed arrays or Tensors, got ${describe(value)}`);
}

/**
 * @param {string} name
 * @param {{ device: unknown, transfer: unknown }} options
 */
function checkCommon(name, { device, transfer }) {
  if (device !== undefined && typeof device !== 'string') {
    throw invalid(`${name}: 'device' must be a string, got ${describe(device)}`);
  }
  if (transfer !== undefined && typeof transfer !== 'boolean') {
    throw invalid(`${name}: 'transfer' must be true or false, got ${describe(transfer)}`);
  }
}

/**
 * The type of an operand's elements where it is known from elsewhere than its array: the option `type` names that of the op's
 * elements, of operands with types of their own only where they are bits that may have it; one that can be of one type alone is.
 * @param {OpRow} row
 * @param {import('../native.js').OperandRow} operand
 * @param {unknown} type what the option names
 * @param {unknown} value
 */
function typeGiven(row, operand, type, value) {
  if (operand.dtypes.length === 1) return operand.dtypes[0];
  if (operand.dtypes.length > 0) return value instanceof Uint16Array && operand.dtypes.includes(String(type)) ? type : undefined;
  return type ?? (row.dtypes.length === 1 ? row.dtypes[0] : undefined);
}

/**
 * One operand as the native side takes it.
 * @param {string} op
 * @param {import('../native.js').OperandRow} operand
 * @param {any} value
 * @param {number[] | undefined} shape
 * @param {unknown} given its element type where that is known
 * @returns {InputArg | undefined}
 */
function input(op, operand, value, shape, given) {
  const where = `${op}: '${operand.name}'`;
  if (value === undefined || value === null) {
    if (operand.required) throw invalid(`${where} must be a typed array or a Tensor, got ${describe(value)}`);
    return undefined;
  }
  if (value instanceof Tensor) {
    if (shape !== undefined) throw invalid(`${where} is a Tensor with dims of its own; leave its 'dims' out`);
    return Tensor.input(value, where);
  }
  if (!isTypedArray(value)) {
    throw invalid(`${where} must be a typed array or a Tensor, got ${describe(value)}`);
  }
  const dtype = given === undefined ? typeOf(where, value) : String(given);
  if (given !== undefined) elementsOf(where, dtype, value);
  const dims = shape ?? [value.length];
  return { name: where, dtype, dims, bytes: bytesOf(where, value) };
}

/**
 * Runs one op.
 * @param {OpRow} row
 * @param {unknown[]} args
 * @returns {Promise<TypedArray | Tensor | (TypedArray | Tensor)[]>}
 */
async function call(row, args) {
  const { inputs, attributes, device, signal, transfer, values } = prepare(row, args);
  if (transfer && !signal?.aborted) {
    // Buffers are taken only by a call that will start.
    guard(() => bridge.check(row.name, device, inputs, attributes));
    Tensor.takeOver(inputs, values);
  }
  const start = (/** @type {number} */ id) => bridge.start(id, row.name, device, inputs, attributes, { transfer });
  const outputs = await run(start, { signal, held: inputs });
  const tensors = values.some((value) => value instanceof Tensor);
  // Bits in, bits out.
  const bits = values.some((value, index) => value instanceof Uint16Array && inputs[index]?.dtype === 'float16');
  const results = outputs.map((output) => (tensors ? wrapOutput(output) : viewOf(output, bits)));
  return row.givesList || results.length > 1 ? results : results[0];
}

/**
 * Milliseconds of one run, `repeats` times over `runs` that follow each other, on the device's clock when it is a GPU.
 * @param {string} op
 * @param {unknown[]} operands
 * @param {Record<string, unknown>} [options]
 * @param {number} [repeats]
 * @param {number} [runs]
 * @returns {Promise<number[]>}
 */
async function timeOnDevice(op, operands, options = {}, repeats = 10, runs = 1) {
  const row = TABLE.find((candidate) => candidate.name === op);
  if (!row) throw invalid(`timeOnDevice: unknown op ${describe(op)}`);
  const { inputs, attributes, device, signal } = prepare(row, [...operands, options]);
  const how = { transfer: false, repeats, runs };
  const [output] = await run((id) => bridge.start(id, row.name, device, inputs, attributes, how), { signal, held: inputs });
  return Array.from(/** @type {Float64Array} */ (viewOf(output)));
}

/** Every op as an async function. @type {Record<string, (...args: unknown[]) => Promise<any>>} */
const ops = {};
for (const row of TABLE) {
  const required = row.operands.filter((operand) => operand.required).length;
  const op = { [row.name]: (/** @type {unknown[]} */ ...args) => call(row, args) }[row.name];
  ops[row.name] = Object.defineProperty(op, 'length', { value: required + (operandsHaveNames(row) ? 1 : 0) });
}

module.exports = { ops, TABLE, timeOnDevice };
