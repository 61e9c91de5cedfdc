import assert from 'node:assert/strict';
import { WarpwrightError } from '../../index.mjs';

/**
 * Checks that a call fails as an error of ours with one of the codes and a message that holds every part.
 * A call may throw at once only where it is not asynchronous: ops always reject.
 * @param {() => Promise<unknown>} call
 * @param {string | string[]} codes
 * @param {...(string | RegExp)} parts
 */
export async function rejects(call, codes, ...parts) {
  let promise;
  try {
    promise = call();
  } catch (error) {
    assert.fail(`threw instead of rejecting: ${error?.message}`);
  }
  const error = await promise.then(() => assert.fail(`resolved, expected ${codes}`), (reason) => reason);
  check(error, codes, parts);
  return error;
}

/** The same for a call that throws. */
export function throws(call, codes, ...parts) {
  let error;
  try {
    call();
  } catch (caught) {
    error = caught;
  }
  assert.ok(error, `did not throw, expected ${codes}`);
  check(error, codes, parts);
  return error;
}

function check(error, codes, parts) {
  if (error instanceof assert.AssertionError) throw error;
  assert.ok(error instanceof WarpwrightError, `is a ${error?.name}: ${error?.stack}`);
  assert.ok(error instanceof Error);
  assert.equal(error.name, 'WarpwrightError');
  assert.ok([codes].flat().includes(error.code), `code is ${error.code}, expected ${codes}: ${error.message}`);
  for (const part of parts) {
    const found = part instanceof RegExp ? part.test(error.message) : error.message.includes(part);
    assert.ok(found, `message lacks ${part}: ${error.message}`);
  }
}
