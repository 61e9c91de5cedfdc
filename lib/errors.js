'use strict';

/**
 * The error of every failure of this package.
 */
class WarpwrightError extends Error {
  /**
   * @param {string} code stable upper-case code, listed in docs/errors.md
   * @param {string} message what was expected and what came
   * @param {{ cause?: unknown }} [options]
   */
  constructor(code, message, options) {
    super(message, options);
    /** Stable code. */
    this.code = code;
  }
}
Object.defineProperty(WarpwrightError.prototype, 'name', { value: 'WarpwrightError', configurable: true, writable: true });

/**
 * @param {string} message
 * @returns {WarpwrightError}
 */
const invalid = (message) => new WarpwrightError('INVALID_ARGUMENT', message);

/**
 * Turns an error of the native side into ours, with a stack from here.
 * @param {any} error
 * @returns {Error}
 */
function wrapNative(error) {
  if (error instanceof WarpwrightError || typeof error?.code !== 'string') return error;
  return new WarpwrightError(error.code, error.message);
}

/**
 * Runs a synchronous native call.
 * @template T
 * @param {() => T} call
 * @returns {T}
 */
function guard(call) {
  try {
    return call();
  } catch (error) {
    throw wrapNative(error);
  }
}

/**
 * A short description of a value for messages: its type and, where short, itself.
 * @param {unknown} value
 * @returns {string}
 */
function describe(value) {
  if (value === null || value === undefined || typeof value === 'boolean') return String(value);
  if (typeof value === 'number' || typeof value === 'bigint') return `${value} (${typeof value})`;
  if (typeof value === 'string') return `'${value.length > 40 ? `${value.slice(0, 40)}...` : value}'`;
  if (Array.isArray(value)) return `an array of ${value.length}`;
  if (typeof value === 'object') return `an object of class ${value.constructor?.name ?? 'null'}`;
  return `a ${typeof value}`;
}

module.exports = { WarpwrightError, invalid, wrapNative, guard, describe };
