'use strict';

const { WarpwrightError } = require('./errors.js');

/**
 * Loads the native addon and, when that fails, says which package is missing and what usually caused it.
 * @returns {typeof import('../native.js')}
 */
function load() {
  try {
    return require('../native.js');
  } catch (cause) {
    throw new WarpwrightError(
      'INTERNAL',
      `the native addon (package ${packageName()}) could not be loaded. Usual causes: the lock file was made on another ` +
        'system (delete node_modules and the lock file, install again), optional dependencies were left out ' +
        '(--omit=optional), or this platform has no prebuilt package (build from source with "npm run build"). ' +
        `First cause: ${firstLine(cause)}`,
      { cause },
    );
  }
}

/** Name of the package that holds this platform's binary. */
function packageName() {
  const { platform, arch } = process;
  const header = /** @type {any} */ (process.report?.getReport())?.header;
  const abi = { linux: header?.glibcVersionRuntime ? '-gnu' : '-musl', win32: '-msvc' }[/** @type {string} */ (platform)];
  return `warpwright-${platform}-${arch}${abi ?? ''}`;
}

/**
 * @param {unknown} error
 * @returns {string}
 */
function firstLine(error) {
  let deepest = error;
  while (deepest instanceof Error && deepest.cause instanceof Error) deepest = deepest.cause;
  return String(deepest instanceof Error ? deepest.message : deepest).split('\n', 1)[0];
}

module.exports = load();
