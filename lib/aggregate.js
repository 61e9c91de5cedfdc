'use strict';

const { bridge, run, checkSignal } = require('./bridge.js');
const { checkDims } = require('./dims.js');
const { bytesOf, isTypedArray, typeOf } = require('./dtypes.js');
const { WarpwrightError, describe, guard, invalid } = require('./errors.js');
const native = require('./load.js');
const { ops } = require('./ops.js');
const { Tensor, viewOf, wrapOutput } = require('./tensor.js');

/**
 * @typedef {import('../native.js').InputArg} InputArg
 * @typedef {import('./dtypes.js').TypedArray} TypedArray
 * @typedef {{ rows: InputArg[], list: boolean, start?: InputArg }} Inputs
 */

/** The tables of rules and pre-aggregations of the native side. */
const TABLE = native.aggregateTable();

/** Options that this file handles; the others are the native side's. */
const COMMON = ['dims', 'device', 'signal', 'transfer', 'report', 'out', 'onProgress', 'start'];

/** Milliseconds between calls of onProgress. */
const INTERVAL = 50;

/**
 * One vector from the rows of many workers.
 * @param {any} rows one typed array with dims [n, d], a Tensor [n, ...], or a list of n typed arrays or Tensors
 * @param {Record<string, any>} options
 * @param {unknown[]} more nothing
 * @returns {Promise<any>} the result, or { result, report } where a report is asked for
 */
async function aggregate(rows, options, ...more) {
  if (more.length > 0) throw invalid(`aggregate: takes rows and options, got ${more.length + 2} arguments`);
  const { dims, device, signal, transfer, report, out, onProgress, start, ...rest } = optionsOf(options);
  checkKinds({ device, transfer, report, onProgress });
  const watched = checkSignal('aggregate', signal);
  const list = Array.isArray(rows);
  const values = list ? [...rows] : [rows];
  const inputs = inputsOf(values, list, dims, start);
  const settings = { ...rest, ...(isTypedArray(rest.weights) ? { weights: Array.from(rest.weights, Number) } : {}) };
  const strict = report === true || out !== undefined || onProgress !== undefined;
  const route = guard(() => bridge.planAggregation(inputs, settings, device ?? 'auto', strict));
  const target = checkOut(out, inputs);
  if (route === 'median') {
    const { even, nan } = rest;
    return ops.median(rows, { even, nan, dims, device, signal: watched, transfer });
  }
  return onDevice({ inputs, settings, values, start, target, watched, onProgress, device: route, transfer: transfer === true, report: report === true });
}

/**
 * @param {unknown} options
 * @returns {Record<string, any>}
 */
function optionsOf(options) {
  if (typeof options !== 'object' || options === null || Array.isArray(options) || isTypedArray(options) || options instanceof Tensor) {
    throw invalid(`aggregate: options must be an object, got ${describe(options)}`);
  }
  return options;
}

/** @param {{ device: unknown, transfer: unknown, report: unknown, onProgress: unknown }} options */
function checkKinds({ device, transfer, report, onProgress }) {
  if (device !== undefined && typeof device !== 'string') throw invalid(`aggregate: 'device' must be a string, got ${describe(device)}`);
  for (const [name, value] of Object.entries({ transfer, report })) {
    if (value !== undefined && typeof value !== 'boolean') throw invalid(`aggregate: '${name}' must be true or false, got ${describe(value)}`);
  }
  if (onProgress !== undefined && typeof onProgress !== 'function') {
    throw invalid(`aggregate: 'onProgress' must be a function, got ${describe(onProgress)}`);
  }
}

/**
 * @param {any[]} values
 * @param {boolean} list
 * @param {unknown} dims
 * @param {unknown} start
 * @returns {Inputs}
 */
function inputsOf(values, list, dims, start) {
  const shape = dims === undefined || dims === null ? undefined : checkDims('aggregate', dims);
  if (list && shape !== undefined) throw invalid("aggregate: a list of rows takes no 'dims'; give Tensors, or leave it out");
  const rows = values.map((value, row) => input(list ? `aggregate: row ${row}` : "aggregate: 'rows'", value, shape));
  return { rows, list, ...(start === undefined || start === null ? {} : { start: input("aggregate: 'start'", start) }) };
}

/**
 * @param {string} where
 * @param {any} value
 * @param {number[]} [shape]
 * @returns {InputArg}
 */
function input(where, value, shape) {
  if (value instanceof Tensor) {
    if (shape !== undefined) throw invalid(`${where} is a Tensor with dims of its own; leave 'dims' out`);
    return Tensor.input(value, where);
  }
  if (!isTypedArray(value)) throw invalid(`${where} must be a typed array or a Tensor, got ${describe(value)}`);
  return { name: where, dtype: typeOf(where, value), dims: shape ?? [value.length], bytes: bytesOf(where, value) };
}

/**
 * The caller's result array, checked before any work.
 * @param {any} out
 * @param {Inputs} inputs
 * @returns {{ given: any, data: any } | undefined}
 */
function checkOut(out, { rows: [first], list }) {
  if (out === undefined || out === null) return undefined;
  const dims = list ? first.dims : first.dims.slice(1);
  const size = dims.reduce((product, dim) => product * dim, 1);
  if (!(out instanceof Tensor) && !isTypedArray(out)) throw invalid(`aggregate: 'out' must be a typed array or a Tensor, got ${describe(out)}`);
  const data = out instanceof Tensor ? out.data : out;
  const type = out instanceof Tensor ? out.type : typeOf("aggregate: 'out'", out);
  bytesOf("aggregate: 'out'", data);
  if (type !== first.dtype || data.length !== size) {
    throw new WarpwrightError('SHAPE_MISMATCH', `aggregate: 'out' must hold ${size} elements of ${first.dtype}, got ${data.length} of ${type}`);
  }
  return { given: out, data };
}

/**
 * Runs a call on a device. Tensors on a GPU come to the host first where that is the CPU; the result goes where they were.
 * @param {{ inputs: Inputs, settings: object, values: any[], start: any, target: ReturnType<typeof checkOut>, device: string,
 *   watched?: AbortSignal, transfer: boolean, report: boolean, onProgress?: (done: number) => void }} call
 */
async function onDevice({ inputs, settings, values, start, target, device, watched, transfer, report, onProgress }) {
  const homes = values.filter((value) => value instanceof Tensor).map((value) => value.location);
  const home = homes.find((location) => location !== 'cpu');
  const local = device === 'cpu' ? await toHost(inputs, values, start, watched) : inputs;
  if (transfer && !watched?.aborted) Tensor.takeOver([...local.rows, local.start], [...values, start]);
  const aggregation = new native.NativeAggregation();
  const done = watchProgress(aggregation, onProgress);
  const how = { device, transfer, report, keep: home !== undefined && target === undefined };
  try {
    const begin = (/** @type {number} */ id) => bridge.aggregate(id, aggregation, local, settings, how);
    const [output] = await run(begin, { signal: watched, held: [local, aggregation] });
    done(true);
    const result = await deliver(output, homes.length > 0, home, target);
    return report ? { result, report: reportOf(aggregation) } : result;
  } finally {
    done(false);
  }
}

/**
 * @param {Inputs} inputs
 * @param {any[]} values
 * @param {any} start
 * @param {AbortSignal} [signal]
 * @returns {Promise<Inputs>}
 */
async function toHost(inputs, values, start, signal) {
  const local = (/** @type {InputArg} */ given, /** @type {any} */ value) =>
    given.handle ? value.to('cpu', { signal }).then((/** @type {Tensor} */ tensor) => Tensor.input(tensor, given.name)) : given;
  if (![...inputs.rows, inputs.start].some((given) => given?.handle)) return inputs;
  const rows = await Promise.all(inputs.rows.map((given, row) => local(given, values[row])));
  return { rows, list: inputs.list, ...(inputs.start ? { start: await local(inputs.start, start) } : {}) };
}

/**
 * The result in the form that it is wanted in.
 * @param {import('../native.js').Output} output
 * @param {boolean} tensors
 * @param {string | undefined} home
 * @param {ReturnType<typeof checkOut>} target
 */
async function deliver(output, tensors, home, target) {
  if (target) {
    target.data.set(viewOf(output));
    return target.given;
  }
  if (!tensors) return viewOf(output);
  const result = wrapOutput(output);
  return home && result.location !== home ? result.to(home) : result;
}

/**
 * Calls back with the part that is done now and then, and with 1 at the end of a call that succeeds.
 * @param {import('../native.js').NativeAggregation} aggregation
 * @param {((done: number) => void) | undefined} onProgress
 * @returns {(succeeded: boolean) => void}
 */
function watchProgress(aggregation, onProgress) {
  if (!onProgress) return () => {};
  const timer = setInterval(() => onProgress(aggregation.progress), INTERVAL);
  return (succeeded) => {
    clearInterval(timer);
    if (succeeded) onProgress(1);
  };
}

/** @param {import('../native.js').NativeAggregation} aggregation */
function reportOf(aggregation) {
  return Object.fromEntries(Object.entries(aggregation.report ?? {}).filter(([, value]) => value !== undefined && value !== null));
}

module.exports = { aggregate: Object.defineProperty(aggregate, 'length', { value: 2 }), TABLE, COMMON };
