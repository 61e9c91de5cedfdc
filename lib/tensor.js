'use strict';

const { bridge, run, checkSignal } = require('./bridge.js');
const { checkDims, sizeOf } = require('./dims.js');
const { bytesOf, dtype, elementsOf, fromValues, holds, isDtype, isTypedArray, typeOf } = require('./dtypes.js');
const { WarpwrightError, describe, guard, invalid } = require('./errors.js');
const native = require('./load.js');

/**
 * @typedef {import('./dtypes.js').TypedArray} TypedArray
 * @typedef {import('../native.js').DeviceTensor} DeviceTensor
 * @typedef {import('../native.js').InputArg} InputArg
 * @typedef {{ type: string, dims: number[], data?: TypedArray, handle?: DeviceTensor }} Parts
 */

/** Marks the constructor call that wraps parts already checked. */
const PARTS = Symbol('parts');

/**
 * An element type, dims and data on the host or on a GPU.
 */
class Tensor {
  /** @type {string} */ #type;
  /** @type {number[]} */ #dims;
  /** @type {TypedArray | undefined} */ #data;
  /** @type {DeviceTensor | undefined} */ #handle;

  /**
   * `new Tensor(type, data, dims?)` or `new Tensor(data, dims?)`; dims default to `[data.length]`.
   * @param {any} first
   * @param {any} [second]
   * @param {any} [third]
   */
  constructor(first, second, third) {
    const parts = first === PARTS ? /** @type {Parts} */ (second) : parseArguments(first, second, third);
    this.#type = parts.type;
    this.#dims = Object.freeze(parts.dims) && parts.dims;
    this.#data = parts.data;
    this.#handle = parts.handle;
  }

  /** Element type. */
  get type() {
    return this.#type;
  }

  /** Dims, outermost first. */
  get dims() {
    return this.#dims;
  }

  /** As reshape, in place: onnxruntime's tensors let their dims be assigned, and transformers.js does it. */
  set dims(dims) {
    const { dims: checked, handle } = this.#reshaped('Tensor', dims);
    this.#dims = Object.freeze(checked) && checked;
    if (handle) this.#handle?.dispose();
    this.#handle = handle;
  }

  /** Number of elements. */
  get size() {
    return sizeOf('Tensor', this.#dims);
  }

  /** Where the data is: 'cpu' or 'cuda:N'. */
  get location() {
    this.#check();
    return this.#handle ? guard(() => /** @type {DeviceTensor} */ (this.#handle).location) : 'cpu';
  }

  /** The elements of a host tensor, not a copy. */
  get data() {
    this.#check();
    if (this.#data) return this.#data;
    throw invalid(`Tensor: the data is on ${this.location}; read it with await getData()`);
  }

  /**
   * The elements, copied from the GPU when they are there.
   * @param {{ into?: TypedArray, signal?: AbortSignal }} [options] into: an array from allocPinned to fill
   * @returns {Promise<TypedArray>}
   */
  async getData(options = {}) {
    this.#check('getData');
    const { into, signal } = options;
    const handle = this.#handle;
    if (into !== undefined) this.#checkInto(into);
    if (!handle) {
      const data = /** @type {TypedArray} */ (this.#data);
      if (into === undefined) return data;
      bytesOf('into', into).set(bytesOf('getData', data));
      return into;
    }
    const target = into === undefined ? undefined : bytesOf('into', into);
    const held = [this, into];
    const [output] = await run((id) => bridge.download(id, handle, target), { signal: checkSignal('getData', signal), held });
    return into ?? viewOf(output);
  }

  /** @param {unknown} into */
  #checkInto(into) {
    const type = dtype('getData', this.#type);
    if (!holds(type, into) || into.length !== this.size) {
      throw invalid(`getData: 'into' must be a ${type.Array.name} of length ${this.size}, got ${describe(into)}`);
    }
  }

  /**
   * A copy on that device, in that element type, or both; the tensor's own data when nothing changes.
   * @param {string | { type?: string, device?: string }} target 'cpu', 'cuda', 'cuda:N', 'auto' or an element type
   * @param {{ signal?: AbortSignal, transfer?: boolean }} [options] transfer: take the host array over
   * @returns {Promise<Tensor>}
   */
  async to(target, options = {}) {
    this.#check('to');
    const { type = this.#type, device = this.location } = destination(target);
    const signal = checkSignal('to', options.signal);
    const place = guard(() => native.resolveDevice(device));
    const how = { signal, transfer: options.transfer === true };
    if (type === this.#type) return this.#move(place, how);
    return this.#convert(type, place, how);
  }

  /**
   * @param {string} place 'cpu' or 'cuda:N'
   * @param {{ signal?: AbortSignal, transfer?: boolean }} how
   * @returns {Promise<Tensor>}
   */
  async #move(place, { signal, transfer = false }) {
    if (place === 'cpu') return make({ type: this.#type, dims: [...this.#dims], data: await this.getData({ signal }) });
    const input = this.#give(transfer);
    const start = (/** @type {number} */ id) => bridge.upload(id, place, input, transfer && !this.#handle);
    const [output] = await run(start, { signal, held: [this, input] });
    return wrapOutput(output);
  }

  /**
   * Converts on a GPU where the tensor is on one or goes to one.
   * @param {string} type
   * @param {string} place 'cpu' or 'cuda:N'
   * @param {{ signal?: AbortSignal, transfer: boolean }} how
   * @returns {Promise<Tensor>}
   */
  async #convert(type, place, { signal, transfer }) {
    if (!this.#handle && place !== 'cpu') {
      const moved = await this.#move(place, { signal, transfer });
      return disposing(moved, () => moved.#convert(type, place, { signal, transfer: false }));
    }
    const input = this.#give(transfer);
    const [device, how] = [this.#handle ? this.location : 'cpu', { transfer: transfer && !this.#handle }];
    const start = (/** @type {number} */ id) => bridge.start(id, 'cast', device, [input], { to: type }, how);
    const [output] = await run(start, { signal, held: [this, input] });
    const converted = wrapOutput(output);
    if (converted.location === place) return converted;
    return disposing(converted, () => converted.#move(place, { signal }));
  }

  /**
   * The tensor as an operand, its host array taken over where that is asked for.
   * @param {boolean} transfer
   */
  #give(transfer) {
    const input = Tensor.input(this, 'x');
    if (transfer && !this.#handle) Tensor.takeOver([input], [this]);
    return input;
  }

  /**
   * The same elements under other dims; shares the data.
   * @param {readonly number[]} dims
   * @returns {Tensor}
   */
  reshape(dims) {
    return make({ type: this.#type, data: this.#data, ...this.#reshaped('reshape', dims) });
  }

  /**
   * The same elements under other dims.
   * @param {string} where
   * @param {unknown} dims
   */
  #reshaped(where, dims) {
    this.#check(where);
    const checked = checkDims(where, dims);
    if (sizeOf(where, checked) !== this.size) {
      const text = `${where}: dims [${this.#dims.join(', ')}] hold ${this.size} elements, got [${checked.join(', ')}]`;
      throw new WarpwrightError('SHAPE_MISMATCH', text);
    }
    const handle = this.#handle && guard(() => /** @type {DeviceTensor} */ (this.#handle).reshape(checked));
    return { dims: checked, handle };
  }

  /** Frees the data. Twice is nothing; calls in flight keep what they use until they are done. */
  dispose() {
    this.#handle?.dispose();
    this.#handle = undefined;
    this.#data = undefined;
  }

  /** @param {string} [where] */
  #check(where = 'Tensor') {
    if (!this.#data && !this.#handle) throw new WarpwrightError('DISPOSED', `${where}: the tensor was disposed of`);
  }

  /**
   * What console.log shows.
   * @param {number} _depth
   * @param {import('node:util').InspectOptions} options
   * @param {typeof import('node:util').inspect} inspect
   */
  [Symbol.for('nodejs.util.inspect.custom')](_depth, options, inspect) {
    const disposed = !this.#data && !this.#handle;
    const shown = disposed ? '(disposed)' : (this.#data ? inspect(this.#data, options) : `on ${this.location}`);
    return `Tensor ${this.#type} [${this.#dims.join(', ')}] ${shown}`;
  }

  /**
   * The tensor as an operand of a native call.
   * @param {Tensor} tensor
   * @param {string} name
   * @returns {InputArg}
   */
  static input(tensor, name) {
    tensor.#check(name);
    const common = { name, dtype: tensor.#type, dims: tensor.#dims };
    if (tensor.#handle) return { ...common, handle: tensor.#handle };
    const data = /** @type {TypedArray} */ (tensor.#data);
    const bytes = bytesOf(name, data);
    if (data.length !== tensor.size) {
      throw new WarpwrightError('SHAPE_MISMATCH', `${name}: the tensor's array was resized to ${data.length} elements`);
    }
    return { ...common, bytes };
  }

  /**
   * Takes the buffers of plain operands over, each once, so that no script can reach them any more. Host tensors
   * among the values end like disposed ones.
   * @param {(InputArg | undefined)[]} inputs whose bytes are replaced
   * @param {unknown[]} values what the inputs were made of
   */
  static takeOver(inputs, values) {
    // A detached buffer's views have length 0, so the ranges are read before the first buffer goes.
    const ranges = inputs.flatMap((input) => {
      if (input?.bytes === undefined) return [];
      const { buffer, byteOffset, byteLength } = input.bytes;
      return [{ input, buffer, byteOffset, byteLength }];
    });
    const taken = new Map();
    for (const { input, buffer, byteOffset, byteLength } of ranges) {
      if (!taken.has(buffer)) taken.set(buffer, detach(input.name, buffer));
      input.bytes = new Uint8Array(taken.get(buffer), byteOffset, byteLength);
    }
    for (const value of values) if (value instanceof Tensor) value.#data = undefined;
  }
}

// Explicit resource management, where the engine knows it.
if (Symbol.dispose) Object.defineProperty(Tensor.prototype, Symbol.dispose, { value: Tensor.prototype.dispose });

/**
 * @param {Parts} parts
 * @returns {Tensor}
 */
const make = (parts) => new Tensor(PARTS, parts);

/**
 * What `to` is asked for.
 * @param {unknown} target
 * @returns {{ type?: string, device?: string }}
 */
function destination(target) {
  if (typeof target === 'string') return isDtype(target) ? { type: target } : { device: target };
  if (typeof target !== 'object' || target === null || Array.isArray(target)) {
    throw invalid(`to: must be given a device, an element type or { type, device }, got ${describe(target)}`);
  }
  const { type, device, ...rest } = /** @type {Record<string, unknown>} */ (target);
  const [unknown] = Object.keys(rest);
  if (unknown !== undefined) throw invalid(`to: unknown key '${unknown}'; known keys: type, device`);
  if (type !== undefined) dtype('to', type);
  if (device !== undefined && typeof device !== 'string') {
    throw invalid(`to: device must be a string, got ${describe(device)}`);
  }
  return /** @type {{ type?: string, device?: string }} */ (target);
}

/**
 * @template T
 * @param {Tensor} tensor
 * @param {() => Promise<T>} work
 * @returns {Promise<T>}
 */
async function disposing(tensor, work) {
  try {
    return await work();
  } finally {
    tensor.dispose();
  }
}

/**
 * @param {any} first
 * @param {any} second
 * @param {any} third
 * @returns {Parts}
 */
function parseArguments(first, second, third) {
  const named = typeof first === 'string';
  const [data, dims] = named ? [second, third] : [first, second];
  const [type, elements] = named ? [first, elementsOf('Tensor', first, data)] : inferred(data);
  const shape = dims === undefined ? [elements.length] : checkDims('Tensor', dims);
  const size = sizeOf('Tensor', shape);
  if (size !== elements.length) {
    const text = `Tensor: dims [${shape.join(', ')}] need ${size} elements, the data has ${elements.length}`;
    throw new WarpwrightError('SHAPE_MISMATCH', text);
  }
  return { type, dims: shape, data: elements };
}

/**
 * @param {unknown} data
 * @returns {[string, TypedArray]}
 */
function inferred(data) {
  if (isTypedArray(data)) return [typeOf('Tensor', data), data];
  if (!Array.isArray(data)) {
    throw invalid(`Tensor: data must be a typed array or an array, got ${describe(data)}`);
  }
  const names = /** @type {Record<string, string>} */ ({ boolean: 'bool', bigint: 'int64' });
  const name = names[typeof data[0]] ?? 'float32';
  return [name, fromValues('Tensor', dtype('Tensor', name), data)];
}

/**
 * Moves a buffer's memory to a buffer that only we hold.
 * @param {string} name
 * @param {ArrayBufferLike} buffer
 * @returns {ArrayBuffer}
 */
function detach(name, buffer) {
  if (!(buffer instanceof ArrayBuffer)) throw invalid(`${name}: a shared buffer cannot be transferred`);
  try {
    return structuredClone(buffer, { transfer: [buffer] });
  } catch (cause) {
    throw new WarpwrightError('INVALID_ARGUMENT', `${name}: its buffer cannot be transferred`, { cause });
  }
}

/**
 * The typed array of a host output; for float16 a Uint16Array of its bits where that is asked for.
 * @param {import('../native.js').Output} output
 * @param {boolean} [bits]
 * @returns {TypedArray}
 */
function viewOf({ dtype: name, bytes }, bits = false) {
  const type = dtype('result', name);
  const [Array, size] = [bits && name === 'float16' ? Uint16Array : type.Array, type.size];
  const { buffer, byteOffset, byteLength } = /** @type {Uint8Array} */ (bytes);
  return new Array(buffer, byteOffset, byteLength / size);
}

/**
 * @param {import('../native.js').Output} output
 * @returns {Tensor}
 */
function wrapOutput(output) {
  const { dtype: type, dims, handle } = output;
  return handle ? make({ type, dims, handle }) : make({ type, dims, data: viewOf(output) });
}

module.exports = { Tensor, viewOf, wrapOutput };
