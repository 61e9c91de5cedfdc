'use strict';

const native = require('./load.js');
const { WarpwrightError, wrapNative, invalid } = require('./errors.js');

/**
 * @typedef {import('../native.js').Output} Output
 * @typedef {{ resolve: (outputs: Output[]) => void, reject: (error: Error) => void, held: unknown }} Pending
 */

/** @type {Map<number, Pending>} */
const pending = new Map();
let nextId = 1;

const bridge = new native.Bridge((id, failure, outputs) => {
  const call = pending.get(id);
  if (call === undefined) return;
  forget(id);
  if (failure) call.reject(new WarpwrightError(failure.code, failure.message));
  else call.resolve(outputs ?? []);
});

/** @param {number} id */
function forget(id) {
  if (pending.delete(id) && pending.size === 0) bridge.unrefer();
}

/**
 * Starts native work and gives a promise for its outputs. The process stays alive until it settles.
 * @param {(id: number) => void} start hands the work to the native side; may throw
 * @param {{ signal?: AbortSignal, held?: unknown }} [options] held: what must stay alive until then
 * @returns {Promise<Output[]>}
 */
function run(start, { signal, held } = {}) {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(aborted(signal));
      return;
    }
    const id = nextId;
    nextId = nextId >= 0xffffffff ? 1 : nextId + 1;
    const onAbort = () => {
      if (signal) listenersOf(signal).delete(onAbort);
      bridge.cancel(id);
      forget(id);
      reject(aborted(signal));
    };
    const settle = (/** @type {(value: any) => void} */ done) => (/** @type {any} */ value) => {
      if (signal) listenersOf(signal).delete(onAbort);
      done(value);
    };
    try {
      start(id);
    } catch (error) {
      reject(wrapNative(error));
      return;
    }
    if (pending.size === 0) bridge.refer();
    pending.set(id, { resolve: settle(resolve), reject: settle(reject), held });
    if (signal) listenersOf(signal).add(onAbort);
  });
}

/** @type {WeakMap<AbortSignal, Set<() => void>>} */
const listeners = new WeakMap();

/**
 * The calls that a signal ends. One listener serves them all: Node warns of a leak at the eleventh.
 * @param {AbortSignal} signal
 * @returns {Set<() => void>}
 */
function listenersOf(signal) {
  const known = listeners.get(signal);
  if (known) return known;
  /** @type {Set<() => void>} */
  const calls = new Set();
  listeners.set(signal, calls);
  signal.addEventListener('abort', () => { for (const end of [...calls]) end(); }, { once: true });
  return calls;
}

/**
 * @param {AbortSignal | undefined} signal
 * @returns {WarpwrightError}
 */
function aborted(signal) {
  return new WarpwrightError('ABORTED', 'the call was aborted by its signal', { cause: signal?.reason });
}

/**
 * @param {string} where
 * @param {unknown} signal
 * @returns {AbortSignal | undefined}
 */
function checkSignal(where, signal) {
  if (signal === undefined || signal === null) return undefined;
  if (signal instanceof AbortSignal) return signal;
  throw invalid(`${where}: 'signal' must be an AbortSignal, got a ${typeof signal}`);
}

module.exports = { bridge, run, checkSignal };
