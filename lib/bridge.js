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
      if (signal) unwatch(signal, onAbort);
      bridge.cancel(id);
      forget(id);
      reject(aborted(signal));
    };
    const settle = (/** @type {(value: any) => void} */ done) => (/** @type {any} */ value) => {
      if (signal) unwatch(signal, onAbort);
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
    if (signal) watch(signal, onAbort);
  });
}

/** @type {WeakMap<AbortSignal, { calls: Set<() => void>, fire: () => void }>} */
const watched = new WeakMap();

/**
 * Calls `end` when the signal fires. One listener serves all calls of a signal: Node warns of a leak at the eleventh.
 * @param {AbortSignal} signal
 * @param {() => void} end
 */
function watch(signal, end) {
  let entry = watched.get(signal);
  if (entry === undefined) {
    /** @type {Set<() => void>} */
    const calls = new Set();
    entry = { calls, fire: () => { for (const call of calls) call(); } };
    watched.set(signal, entry);
    signal.addEventListener('abort', entry.fire);
  }
  entry.calls.add(end);
}

/**
 * Ends what `watch` began; the last call of a signal takes the listener away.
 * @param {AbortSignal} signal
 * @param {() => void} end
 */
function unwatch(signal, end) {
  const entry = watched.get(signal);
  if (!entry?.calls.delete(end) || entry.calls.size > 0) return;
  signal.removeEventListener('abort', entry.fire);
  watched.delete(signal);
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
