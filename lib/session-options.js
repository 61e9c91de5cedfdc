'use strict';

const { bytesOf, isTypedArray } = require('./dtypes.js');
const { describe, invalid } = require('./errors.js');

/**
 * What becomes of an option: 'honoured', or 'ignored' because it tunes what another engine does. docs/migration.md is
 * compared with these tables.
 * @typedef {'honoured' | 'ignored'} Fate
 */

/** Options of InferenceSession.create: ours, then those of onnxruntime. @type {Record<string, Fate>} */
const SESSION_OPTIONS = {
  device: 'honoured',
  maxModelBytes: 'honoured',
  maxTensorBytes: 'honoured',
  maxNodes: 'honoured',
  memoryLimit: 'honoured',
  allowLinks: 'honoured',
  signal: 'honoured',
  executionProviders: 'honoured',
  externalData: 'honoured',
  freeDimensionOverrides: 'honoured',
  preferredOutputLocation: 'honoured',
  intraOpNumThreads: 'ignored',
  interOpNumThreads: 'ignored',
  graphOptimizationLevel: 'ignored',
  enableCpuMemArena: 'ignored',
  enableMemPattern: 'ignored',
  executionMode: 'ignored',
  optimizedModelFilePath: 'ignored',
  enableProfiling: 'ignored',
  profileFilePrefix: 'ignored',
  logId: 'ignored',
  logSeverityLevel: 'ignored',
  logVerbosityLevel: 'ignored',
  enableGraphCapture: 'ignored',
  extra: 'ignored',
};

/** Options of run. @type {Record<string, Fate>} */
const RUN_OPTIONS = {
  signal: 'honoured',
  transfer: 'honoured',
  outputLocation: 'honoured',
  terminate: 'honoured',
  tag: 'ignored',
  logSeverityLevel: 'ignored',
  logVerbosityLevel: 'ignored',
  extra: 'ignored',
};

/**
 * The options that were given; undefined counts as absent.
 * @param {string} where
 * @param {unknown} options
 * @param {Record<string, Fate>} known
 * @returns {Record<string, any>}
 */
function given(where, options, known) {
  if (options === undefined || options === null) return {};
  if (typeof options !== 'object' || Array.isArray(options) || isTypedArray(options)) {
    throw invalid(`${where}: options must be an object, got ${describe(options)}`);
  }
  const entries = Object.entries(options).filter(([, value]) => value !== undefined);
  const unknown = entries.find(([name]) => !Object.hasOwn(known, name));
  if (unknown) throw invalid(`${where}: unknown option '${unknown[0]}'; known options: ${Object.keys(known).join(', ')}`);
  return Object.fromEntries(entries);
}

/** Names of onnxruntime's execution providers that we stand for. @type {Record<string, 'cpu' | 'cuda'>} */
const PROVIDERS = { cpu: 'cpu', wasm: 'cpu', cuda: 'cuda', tensorrt: 'cuda' };

/**
 * The device that a list of execution providers asks for: the first one that there is, others are passed over, as
 * onnxruntime does it.
 * @param {string} where
 * @param {unknown} list
 * @returns {string | undefined}
 */
function deviceOfProviders(where, list) {
  if (!Array.isArray(list)) throw invalid(`${where}: 'executionProviders' must be a list, got ${describe(list)}`);
  const devices = list.map((provider) => {
    const name = typeof provider === 'string' ? provider : provider?.name;
    if (typeof name !== 'string') throw invalid(`${where}: 'executionProviders' must hold names or objects with a 'name', got ${describe(provider)}`);
    const kind = PROVIDERS[name.toLowerCase()];
    return kind === 'cuda' && Number.isInteger(provider.deviceId) ? `cuda:${provider.deviceId}` : kind;
  });
  const known = devices.filter((device) => device !== undefined);
  if (known.length === 0) return list.length === 0 ? undefined : 'auto';
  // A GPU with the CPU behind it is what 'auto' means.
  return known[0] === 'cuda' && known.includes('cpu') ? 'auto' : known[0];
}

/**
 * Options of create in the native side's words.
 * @param {unknown} options
 */
function sessionOptions(options) {
  const where = 'InferenceSession.create';
  const { device, executionProviders, externalData, allowLinks, signal, freeDimensionOverrides, preferredOutputLocation, ...rest } =
    given(where, options, SESSION_OPTIONS);
  if (device !== undefined && typeof device !== 'string') throw invalid(`${where}: 'device' must be a string, got ${describe(device)}`);
  for (const name of ['maxModelBytes', 'maxTensorBytes', 'maxNodes', 'memoryLimit']) {
    if (rest[name] !== undefined && typeof rest[name] !== 'number') throw invalid(`${where}: '${name}' must be a number, got ${describe(rest[name])}`);
  }
  const providers = executionProviders === undefined || executionProviders === null ? undefined : deviceOfProviders(where, executionProviders);
  return {
    native: {
      device: device ?? providers ?? 'auto',
      maxModelBytes: rest.maxModelBytes,
      maxTensorBytes: rest.maxTensorBytes,
      maxNodes: rest.maxNodes,
      memoryLimit: rest.memoryLimit,
      externalData: externalFiles(where, externalData),
      allowLinks: allowLinks === true,
    },
    signal,
    dims: overrides(where, freeDimensionOverrides),
    outputLocation: preferredOutputLocation === undefined ? undefined : location(where, 'preferredOutputLocation', preferredOutputLocation),
  };
}

/**
 * @param {string} where
 * @param {unknown} files
 */
function externalFiles(where, files) {
  if (files === undefined || files === null) return [];
  if (!Array.isArray(files)) throw invalid(`${where}: 'externalData' must be a list of { path, data }, got ${describe(files)}`);
  return files.map((file) => {
    const bytes = file?.data instanceof ArrayBuffer ? new Uint8Array(file.data) : file?.data;
    if (typeof file?.path !== 'string' || !(bytes instanceof Uint8Array)) {
      throw invalid(`${where}: 'externalData' must hold objects { path: string, data: Uint8Array }, got ${describe(file)}`);
    }
    return { path: file.path, data: bytes };
  });
}

/**
 * @param {string} where
 * @param {unknown} dims
 * @returns {Record<string, number>}
 */
function overrides(where, dims) {
  if (dims === undefined || dims === null) return {};
  const bad = typeof dims === 'object' ? Object.entries(dims).find(([, dim]) => !Number.isSafeInteger(dim) || dim < 0) : ['', dims];
  if (bad) throw invalid(`${where}: 'freeDimensionOverrides' must give whole numbers by dims' names, got ${describe(bad[1])}`);
  return /** @type {Record<string, number>} */ (dims);
}

/**
 * Where results are wanted.
 * @param {string} where
 * @param {string} option
 * @param {unknown} value
 * @returns {'cpu' | 'device'}
 */
function location(where, option, value) {
  if (value === 'cpu' || value === 'cpu-pinned') return 'cpu';
  if (value === 'device' || value === 'gpu-buffer') return 'device';
  throw invalid(`${where}: '${option}' must be 'cpu' or 'device', got ${describe(value)}`);
}

/**
 * A model's bytes, or the path of its file.
 * @param {unknown} source
 * @param {unknown[]} rest arguments that follow it
 * @returns {{ source: string | Uint8Array, options: unknown }}
 */
function modelSource(source, rest) {
  const where = 'InferenceSession.create';
  if (typeof source === 'string') return { source, options: rest[0] };
  if (source instanceof URL) return { source: require('node:url').fileURLToPath(source), options: rest[0] };
  if (source instanceof ArrayBuffer || source instanceof SharedArrayBuffer) {
    const [offset, length] = rest;
    if (typeof offset !== 'number') return { source: new Uint8Array(source), options: offset };
    const ranged = typeof length === 'number';
    return { source: new Uint8Array(source, offset, ranged ? length : undefined), options: rest[ranged ? 2 : 1] };
  }
  if (isTypedArray(source)) return { source: bytesOf(where, source), options: rest[0] };
  throw invalid(`${where}: the model must be a path or its bytes, got ${describe(source)}`);
}

module.exports = { RUN_OPTIONS, SESSION_OPTIONS, given, location, modelSource, sessionOptions };
