'use strict';

const { bridge, run, checkSignal } = require('./bridge.js');
const { bytesOf, isTypedArray, elementsOf } = require('./dtypes.js');
const { WarpwrightError, describe, guard, invalid } = require('./errors.js');
const native = require('./load.js');
const { RUN_OPTIONS, given, location, modelSource, sessionOptions } = require('./session-options.js');
const { Tensor, wrapOutput } = require('./tensor.js');

/**
 * @typedef {import('../native.js').PortRow} PortRow
 * @typedef {import('../native.js').InputArg} InputArg
 * @typedef {{ name: string, isTensor: true, type: string, shape: (number | string)[] }} Metadata
 */

/** Marks the constructor call that wraps a session that is open. */
const OPEN = Symbol('open');

/** A network ready to run; the shape of onnxruntime's session. */
class InferenceSession {
  /** @type {import('../native.js').NativeSession} */ #native;
  /** @type {PortRow[]} */ #inputs;
  /** @type {PortRow[]} */ #outputs;
  /** @type {Record<string, number>} */ #dims;
  /** @type {'cpu' | 'device' | undefined} */ #outputLocation;

  /**
   * @param {unknown} mark
   * @param {any} [parts]
   */
  constructor(mark, parts) {
    if (mark !== OPEN) throw invalid('InferenceSession: use await InferenceSession.create(pathOrBytes, options)');
    this.#native = parts.native;
    this.#inputs = parts.native.inputs;
    this.#outputs = parts.native.outputs;
    this.#dims = parts.dims;
    this.#outputLocation = parts.outputLocation;
  }

  /**
   * Reads a model from a path or its bytes, off the JavaScript thread.
   * @param {string | URL | Uint8Array | ArrayBufferLike} model
   * @param {...unknown} rest options, or byteOffset, byteLength and options behind a buffer
   * @returns {Promise<InferenceSession>}
   */
  static async create(model, ...rest) {
    const { source, options } = modelSource(model, rest);
    const { native: how, signal, dims, outputLocation } = sessionOptions(options);
    const session = new native.NativeSession();
    const watched = checkSignal('InferenceSession.create', signal);
    await run((id) => bridge.openSession(id, session, source, how), { signal: watched, held: [session, source] });
    return new InferenceSession(OPEN, { native: session, dims, outputLocation });
  }

  /** Names of the values that a run must give. */
  get inputNames() {
    return this.#inputs.map(({ name }) => name);
  }

  /** Names of the values that a run gives. */
  get outputNames() {
    return this.#outputs.map(({ name }) => name);
  }

  /** What the model says of its inputs. @returns {Metadata[]} */
  get inputMetadata() {
    return this.#inputs.map(metadata);
  }

  /** What the model says of its outputs. @returns {Metadata[]} */
  get outputMetadata() {
    return this.#outputs.map(metadata);
  }

  /** Where the session runs: 'cpu' or 'cuda:N'. */
  get device() {
    return guard(() => this.#native.device);
  }

  /**
   * Runs the network.
   * @param {Record<string, any>} feeds a Tensor for each input, or a typed array where at most one dim of it is free
   * @param {any} [second] names of the outputs wanted, or an object of them with Tensors to fill or null; all by default
   * @param {any} [third] options
   * @returns {Promise<Record<string, Tensor>>}
   */
  async run(feeds, second, third) {
    const { fetches, options } = this.#fetches(second, third);
    const { signal, transfer, outputLocation, terminate } = given('run', options, RUN_OPTIONS);
    if (terminate === true) throw new WarpwrightError('ABORTED', "run: the option 'terminate' was set");
    const inputs = this.#feeds(feeds);
    const wanted = outputLocation === undefined ? this.#outputLocation : location('run', 'outputLocation', outputLocation);
    const keep = wanted === undefined ? inputs.length > 0 && inputs.every(({ handle }) => handle) : wanted === 'device';
    const names = [...fetches.keys()];
    const places = names.map((name) => this.outputNames.indexOf(name));
    const values = this.inputNames.map((name) => feeds[name]);
    if (transfer === true && !signal?.aborted) Tensor.takeOver(inputs, values);
    const start = (/** @type {number} */ id) => bridge.runSession(id, this.#native, inputs, places, keep, transfer === true);
    const outputs = await run(start, { signal: checkSignal('run', signal), held: [this, inputs] });
    return Object.fromEntries(outputs.map((output, index) => [names[index], deliver(names[index], output, fetches.get(names[index]))]));
  }

  /**
   * The outputs wanted, each with the tensor to fill if one was given.
   * @param {unknown} second
   * @param {unknown} third
   */
  #fetches(second, third) {
    const all = this.outputNames;
    const names = Array.isArray(second) ? second : isFetches(second, all) ? Object.keys(second) : undefined;
    const options = names === undefined && third === undefined ? second : third;
    if (names === undefined && third !== undefined && second !== undefined && second !== null) {
      throw invalid(`run: the outputs wanted must be names or an object by names, got ${describe(second)}`);
    }
    /** @type {Map<string, Tensor | null>} */
    const fetches = new Map();
    for (const name of names ?? all) {
      if (!all.includes(name)) throw invalid(`run: unknown output ${describe(name)}; outputs: ${all.join(', ')}`);
      const target = Array.isArray(second) || names === undefined ? null : /** @type {any} */ (second)[name];
      if (target !== null && target !== undefined && !(target instanceof Tensor)) {
        throw invalid(`run: output '${name}' must be a Tensor to fill or null, got ${describe(target)}`);
      }
      fetches.set(name, target ?? null);
    }
    return { fetches, options };
  }

  /**
   * @param {unknown} feeds
   * @returns {InputArg[]}
   */
  #feeds(feeds) {
    if (typeof feeds !== 'object' || feeds === null || Array.isArray(feeds) || isTypedArray(feeds) || feeds instanceof Tensor) {
      throw invalid(`run: feeds must be an object of Tensors or typed arrays by input names, got ${describe(feeds)}`);
    }
    const unknown = Object.keys(feeds).find((name) => !this.inputNames.includes(name));
    if (unknown !== undefined) throw invalid(`run: unknown input '${unknown}'; inputs: ${this.inputNames.join(', ')}`);
    return this.#inputs.map((port) => {
      const value = /** @type {Record<string, any>} */ (feeds)[port.name];
      const input = feed(port, value);
      this.#checkDims(port, input.dims);
      return input;
    });
  }

  /**
   * Dims that freeDimensionOverrides fixed.
   * @param {PortRow} port
   * @param {number[]} dims
   */
  #checkDims(port, dims) {
    for (const [axis, dim] of (port.dims ?? []).entries()) {
      const fixed = typeof dim === 'string' && Object.hasOwn(this.#dims, dim) ? this.#dims[dim] : undefined;
      if (fixed !== undefined && dims[axis] !== fixed) {
        throw new WarpwrightError('SHAPE_MISMATCH', `run: dim ${axis} of input '${port.name}' is '${dim}', which freeDimensionOverrides makes ${fixed}, got [${dims.join(', ')}]`);
      }
    }
  }

  /**
   * Where the steps of the latest run were placed, up to the first value that only a run could tell; empty before one.
   * @returns {{ node: string, op: string, device: string }[]}
   */
  get placement() {
    return guard(() => this.#native.placement).map(({ node, op, device }) => ({ node, op, device }));
  }

  /**
   * Runs the network once and tells what each step took. The device is idle before each, so the sum is more than a run takes.
   * @param {Record<string, any>} feeds as for run
   * @param {{ signal?: AbortSignal }} [options]
   * @returns {Promise<{ node: string, op: string, device: string, milliseconds: number }[]>}
   */
  async profile(feeds, options) {
    const { signal } = given('profile', options, { signal: 'honoured' });
    const inputs = this.#feeds(feeds);
    const start = (/** @type {number} */ id) => bridge.profileSession(id, this.#native, inputs);
    await run(start, { signal: checkSignal('profile', signal), held: [this, inputs] });
    return this.#native.times.map(({ node, op, device, milliseconds = 0 }) => ({ node, op, device, milliseconds }));
  }

  /** Lets the network go; runs in flight finish. Twice is nothing. */
  async release() {
    this.#native.release();
  }

  /** The same, at once. */
  dispose() {
    this.#native.release();
  }
}

if (Symbol.dispose) {
  Object.defineProperty(InferenceSession.prototype, Symbol.dispose, { value: InferenceSession.prototype.dispose, writable: true, configurable: true });
}

/** @param {PortRow} port @returns {Metadata} */
function metadata({ name, dtype = 'float32', dims = [] }) {
  return { name, isTensor: true, type: dtype, shape: [...dims] };
}

/**
 * Whether an object names outputs and not options.
 * @param {unknown} value
 * @param {string[]} names
 * @returns {value is Record<string, unknown>}
 */
function isFetches(value, names) {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const keys = Object.keys(value);
  return keys.some((key) => names.includes(key));
}

/**
 * One input as the native side takes it.
 * @param {PortRow} port
 * @param {any} value
 * @returns {InputArg}
 */
function feed(port, value) {
  const where = `run: input '${port.name}'`;
  if (value instanceof Tensor) return Tensor.input(value, port.name);
  if (value === undefined || value === null) throw invalid(`${where} is missing`);
  if (isTypedArray(value)) return typedFeed(port, value, where);
  // A Tensor of another copy of this package or of onnxruntime-common.
  if (isTypedArray(value.data) && Array.isArray(value.dims) && typeof value.type === 'string') {
    return Tensor.input(new Tensor(value.type, value.data, [...value.dims]), port.name);
  }
  throw invalid(`${where} must be a Tensor or a typed array, got ${describe(value)}`);
}

/**
 * A typed array whose dims follow from the model's.
 * @param {PortRow} port
 * @param {import('./dtypes.js').TypedArray} value
 * @param {string} where
 * @returns {InputArg}
 */
function typedFeed({ name, dtype, dims }, value, where) {
  if (dtype === undefined || dims === undefined) throw invalid(`${where}: the model does not tell its dims; give a Tensor`);
  const free = dims.filter((dim) => typeof dim === 'string');
  if (free.length > 1) throw invalid(`${where}: the model leaves ${free.length} dims open; give a Tensor`);
  elementsOf(where, dtype, value);
  const known = dims.reduce((/** @type {number} */ product, dim) => (typeof dim === 'number' ? product * dim : product), 1);
  const rest = known === 0 ? 0 : value.length / known;
  if (!Number.isInteger(rest) || (free.length === 0 && rest !== 1)) {
    throw new WarpwrightError('SHAPE_MISMATCH', `${where}: ${value.length} elements do not fill dims [${dims.map((dim) => dim || '?').join(', ')}]`);
  }
  return { name, dtype, dims: dims.map((dim) => (typeof dim === 'number' ? dim : rest)), bytes: bytesOf(where, value) };
}

/**
 * A result, in the tensor given for it if there was one.
 * @param {string} name
 * @param {import('../native.js').Output} output
 * @param {Tensor | null | undefined} target
 * @returns {Tensor}
 */
function deliver(name, output, target) {
  const result = wrapOutput(output);
  if (!target) return result;
  if (target.type !== result.type || String(target.dims) !== String(result.dims)) {
    throw new WarpwrightError('SHAPE_MISMATCH', `run: output '${name}' is ${result.type} [${result.dims.join(', ')}], the tensor given for it ${target.type} [${target.dims.join(', ')}]`);
  }
  /** @type {any} */ (target.data).set(result.data);
  return target;
}

module.exports = { InferenceSession };
