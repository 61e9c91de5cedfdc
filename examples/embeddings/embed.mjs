// A worker that embeds sentences by transformers.js on one of two runtimes. transformers.js takes its runtime once, when it
// is imported; a worker has globals and modules of its own, so two of them can differ.
import { fileURLToPath } from 'node:url';
import { parentPort, workerData } from 'node:worker_threads';
import * as warpwright from '../../index.mjs';

/** @typedef {{ runtime: 'warpwright' | 'onnxruntime-node', device: string, sentences: string[] }} Work */

const { runtime, device, sentences } = /** @type {Work} */ (workerData);
/** Not a development package of this project: see README.md. */
const NAME = '@huggingface/transformers';

if (runtime === 'warpwright') Reflect.set(globalThis, Symbol.for('onnxruntime'), warpwright);
const { env, pipeline } = await import(NAME);
env.allowRemoteModels = false;
env.localModelPath = fileURLToPath(new URL('.', import.meta.url));

// On a runtime of one's own transformers.js knows no device but 'auto'; the session's own option says which it is.
const options = runtime === 'warpwright' ? { device: 'auto', session_options: { device } } : {};
const embed = await pipeline('feature-extraction', 'model', { dtype: 'fp32', ...options });
await embed(sentences, { pooling: 'mean', normalize: true });
const start = performance.now();
const { data, dims } = await embed(sentences, { pooling: 'mean', normalize: true });
const milliseconds = performance.now() - start;
await embed.dispose();
/** @type {import('node:worker_threads').MessagePort} */ (parentPort).postMessage({ vectors: Float32Array.from(data), dims, milliseconds });
