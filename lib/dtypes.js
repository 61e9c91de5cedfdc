'use strict';

const native = require('./load.js');
const { WarpwrightError, invalid, describe } = require('./errors.js');

/**
 * @typedef {Float32Array | Float64Array | Int8Array | Uint8Array | Int16Array | Uint16Array | Int32Array | Uint32Array
 *   | BigInt64Array | BigUint64Array} TypedArray
 * @typedef {{ name: string, size: number, Array: any }} Dtype
 */

/** The engine's Float16Array, where it has one. */
const Float16 = /** @type {any} */ (globalThis).Float16Array;

/** @type {Map<string, Dtype>} */
const DTYPES = new Map(
  native.dtypeTable().map(({ name, size, array }) => {
    const Array = (name === 'float16' && Float16) || /** @type {any} */ (globalThis)[array];
    return [name, { name, size, Array }];
  }),
);

/** Element type that a bare typed array stands for, by class name. @type {Record<string, string>} */
const BY_CLASS = { Uint8ClampedArray: 'uint8', Float16Array: 'float16' };
for (const { name, Array } of DTYPES.values()) {
  if (!['float16', 'bfloat16', 'bool'].includes(name)) BY_CLASS[Array.name] = name;
}

/**
 * @param {string} where
 * @param {unknown} name
 * @returns {Dtype}
 */
function dtype(where, name) {
  const found = typeof name === 'string' ? DTYPES.get(name) : undefined;
  if (found) return found;
  const message = `${where}: type must be one of ${[...DTYPES.keys()].join(', ')}, got ${describe(name)}`;
  throw typeof name === 'string' ? new WarpwrightError('UNSUPPORTED_DTYPE', message) : invalid(message);
}

/** Whether that is the name of an element type. @param {unknown} name */
const isDtype = (name) => typeof name === 'string' && DTYPES.has(name);

/**
 * @param {unknown} value
 * @returns {value is TypedArray}
 */
const isTypedArray = (value) => ArrayBuffer.isView(value) && !(value instanceof DataView);

/**
 * Whether elements of that type may lie in such an array: the type's own, or bits of float16.
 * @param {Dtype} type
 * @param {unknown} data
 * @returns {data is TypedArray}
 */
function holds(type, data) {
  if (type.name === 'float16' && data instanceof Uint16Array) return true;
  return data instanceof type.Array || (type.name === 'uint8' && data instanceof Uint8ClampedArray);
}

/**
 * The array, checked to hold elements of that type.
 * @param {string} where
 * @param {string} name
 * @param {unknown} data
 * @returns {TypedArray}
 */
function elementsOf(where, name, data) {
  const type = dtype(where, name);
  if (Array.isArray(data)) return fromValues(where, type, data);
  if (holds(type, data)) return data;
  throw invalid(`${where}: data of type ${name} must be a ${type.Array.name} or an array, got ${describe(data)}`);
}

/**
 * Element type of a bare typed array.
 * @param {string} where
 * @param {TypedArray} array
 * @returns {string}
 */
function typeOf(where, array) {
  const name = BY_CLASS[array.constructor.name] ?? BY_CLASS[Object.getPrototypeOf(array.constructor)?.name];
  if (name) return name;
  throw new WarpwrightError('UNSUPPORTED_DTYPE', `${where}: ${describe(array)} is not a supported typed array`);
}

/**
 * The bytes of a typed array, without a copy.
 * @param {string} where
 * @param {TypedArray} array
 * @returns {Uint8Array}
 */
function bytesOf(where, array) {
  try {
    return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
  } catch (cause) {
    throw new WarpwrightError('INVALID_ARGUMENT', `${where}: the array's buffer is detached`, { cause });
  }
}

/**
 * Elements from an array of plain values.
 * @param {string} where
 * @param {Dtype} type
 * @param {readonly unknown[]} values
 * @returns {TypedArray}
 */
function fromValues(where, type, values) {
  const data = new type.Array(values.length);
  const bits = ['float16', 'bfloat16'].includes(type.name);
  const slots = bits ? new Uint16Array(data.buffer) : data;
  const convert = converter(type.name);
  values.forEach((value, index) => {
    const element = convert(value);
    if (element === undefined) {
      throw invalid(`${where}: element ${index} does not fit ${type.name}, got ${describe(value)}`);
    }
    slots[index] = element;
  });
  return data;
}

/** Whole-number types and their ranges. @type {Record<string, [bigint, bigint]>} */
const RANGES = Object.fromEntries(
  ['int8', 'uint8', 'int16', 'uint16', 'int32', 'uint32', 'int64', 'uint64'].map((name) => {
    const bits = BigInt(name.replace(/\D/g, ''));
    const signed = name.startsWith('int');
    return [name, signed ? [-(2n ** (bits - 1n)), 2n ** (bits - 1n) - 1n] : [0n, 2n ** bits - 1n]];
  }),
);

/**
 * @param {string} type
 * @returns {(value: unknown) => number | bigint | undefined} undefined for a value that does not fit
 */
function converter(type) {
  if (type === 'bool') {
    return (value) => (typeof value === 'boolean' || value === 0 || value === 1 ? Number(value) : undefined);
  }
  const range = RANGES[type];
  if (range) {
    const wide = type.endsWith('64');
    return (value) => {
      if (typeof value !== 'bigint' && !(typeof value === 'number' && Number.isSafeInteger(value))) return undefined;
      const whole = BigInt(value);
      if (whole < range[0] || whole > range[1]) return undefined;
      return wide ? whole : Number(whole);
    };
  }
  const bits = { float16: halfBits, bfloat16: bfloatBits }[type];
  return (value) => (typeof value !== 'number' ? undefined : bits ? bits(value) : value);
}

const word = new Float64Array(1);
const words = new BigUint64Array(word.buffer);

/**
 * Bits of the nearest value, ties to even, in a format of that many exponent and fraction bits.
 * @param {number} value
 * @param {number} exponentBits
 * @param {number} fractionBits
 * @returns {number}
 */
function narrowBits(value, exponentBits, fractionBits) {
  const sign = Object.is(value, -0) || value < 0 ? 1 << (exponentBits + fractionBits) : 0;
  const top = (2 ** exponentBits - 1) * 2 ** fractionBits;
  if (Number.isNaN(value)) return top + 2 ** (fractionBits - 1);
  const size = Math.abs(value);
  if (size === Infinity) return sign + top;
  word[0] = size;
  const bias = 2 ** (exponentBits - 1) - 1;
  const exponent = Math.max(Number((words[0] >> 52n) & 0x7ffn) - 1023, 1 - bias);
  const units = roundHalfEven(size / 2 ** (exponent - fractionBits));
  return sign + Math.min((exponent + bias - 1) * 2 ** fractionBits + units, top);
}

/** @param {number} value */
function roundHalfEven(value) {
  const floor = Math.floor(value);
  const rest = value - floor;
  return rest > 0.5 || (rest === 0.5 && floor % 2 === 1) ? floor + 1 : floor;
}

/** @param {number} value */
const halfBits = (value) => narrowBits(value, 5, 10);
/** @param {number} value */
const bfloatBits = (value) => narrowBits(value, 8, 7);

module.exports = { dtype, elementsOf, fromValues, holds, isDtype, isTypedArray, typeOf, bytesOf };
