// What is timed of a network, on each side: the same calls with the same feeds.
import { createRequire } from 'node:module';

/**
 * @typedef {import('../index.mjs').Device} Device
 * @typedef {{ path: string, part: import('./cases.mjs').Network['part'], shapes: number[][] }} Request  shapes: of all inputs, run by run
 * @typedef {{ round: (ms: number) => Promise<number[]>, close: () => Promise<void> }} Opened  round: milliseconds of each call
 * @typedef {{ name: string, open: (request: Request) => Promise<Opened> }} Side
 * @typedef {{ inputNames: readonly string[], run: (feeds: Record<string, any>, options?: any) => Promise<any>, release: () => Promise<void> }} Session
 * @typedef {{ create: (path: string) => Promise<Session>, tensor: (type: string, data: any, dims: number[]) => any, keep?: (tensor: any) => Promise<any> }} Library
 */

/** onnxruntime-node: the one that Node finds, or the package's folder in ONNXRUNTIME_NODE. @returns {any} */
export function loadPeer() {
  try {
    return createRequire(import.meta.url)(process.env.ONNXRUNTIME_NODE ?? 'onnxruntime-node');
  } catch {
    return undefined;
  }
}

/** Feeds of one shape for all inputs: floats between 0 and 1, small whole numbers. @param {any} session @param {number[]} dims @param {Library} library */
function feedsOf(session, dims, library) {
  const size = dims.reduce((product, dim) => product * dim, 1);
  const metadata = session.inputMetadata ?? [];
  return Object.fromEntries(
    session.inputNames.map((/** @type {string} */ name, /** @type {number} */ index) => {
      const type = metadata[index]?.type ?? 'float32';
      const value = (/** @type {number} */ i) => (/mask/.test(name) ? 1 : /type/.test(name) ? 0 : 1 + (i % 7));
      const data = type === 'int64' ? BigInt64Array.from({ length: size }, (_, i) => BigInt(value(i))) : Float32Array.from({ length: size }, (_, i) => (i % 97) / 97);
      return [name, library.tensor(type, data, dims)];
    }),
  );
}

/** Runs and brings the results to the host. @param {Session} session @param {Record<string, any>} feeds */
async function runOnce(session, feeds) {
  const results = await session.run(feeds);
  for (const result of Object.values(results)) {
    await result.getData();
    result.dispose?.();
  }
}

/** A run whose values stay on the device. @param {Session} session @param {Record<string, any>} feeds @param {NonNullable<Library['keep']>} keep */
async function boundRun(session, feeds, keep) {
  const kept = Object.fromEntries(await Promise.all(Object.entries(feeds).map(async ([name, tensor]) => [name, await keep(tensor)])));
  return async () => {
    const results = await session.run(kept, { outputLocation: 'device' });
    for (const result of Object.values(results)) result.dispose();
  };
}

/** The call that is timed, made ready. @param {Library} library @param {Request} request @returns {Promise<{ call: () => Promise<unknown>, close: () => Promise<void> }>} */
async function callOf(library, { path, part, shapes }) {
  if (part === 'create') return { call: async () => (await library.create(path)).release(), close: async () => {} };
  const session = await library.create(path);
  const close = () => session.release();
  const feeds = shapes.map((dims) => feedsOf(session, dims, library));
  if (part === 'first' || part === 'new') {
    let step = 0;
    return { call: () => runOnce(session, feeds[step++]), close };
  }
  const call = part === 'bound' && library.keep ? await boundRun(session, feeds[0], library.keep) : () => runOnce(session, feeds[0]);
  await call();
  return { call, close };
}

/** Calls until `ms` have passed, one at least. @param {() => Promise<unknown>} call @param {number} ms */
async function round(call, ms) {
  const times = [];
  const begin = performance.now();
  do {
    const start = performance.now();
    await call();
    times.push(performance.now() - start);
  } while (performance.now() - begin < ms);
  return times;
}

/** @param {string} name @param {Library} library @returns {Side} */
const inProcess = (name, library) => ({
  name,
  open: async (request) => {
    const { call, close } = await callOf(library, request);
    return { round: (ms) => round(call, ms), close };
  },
});

/** @param {typeof import('../index.mjs')} api @param {Device} device */
export const ourSide = (api, device) =>
  inProcess('warpwright', {
    create: (path) => /** @type {Promise<any>} */ (api.InferenceSession.create(path, { device })),
    tensor: (type, data, dims) => new api.Tensor(/** @type {any} */ (type), data, dims),
    keep: (tensor) => tensor.to(device),
  });

/** @param {any} ort */
export const nodeSide = (ort) =>
  inProcess('onnxruntime-node', {
    create: (path) => ort.InferenceSession.create(path, { executionProviders: ['cpu'] }),
    tensor: (type, data, dims) => new ort.Tensor(type, data, dims),
  });

/** @param {import('./peer.mjs').Peer} peer @returns {Side} */
export const pythonSide = (peer) => ({
  name: String(peer.hello.name),
  open: async (request) => {
    await peer.ask({ open: request });
    return {
      round: async (ms) => (await peer.ask({ round: ms })).times,
      close: async () => void (await peer.ask({ close: true })),
    };
  },
});
