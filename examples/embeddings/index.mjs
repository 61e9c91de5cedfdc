// Embeds sentences by transformers.js on Warpwright and on onnxruntime-node, and compares the vectors. See README.md.
import { existsSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';

const USAGE = `usage: node examples/embeddings/index.mjs [options]
  --device cpu|cuda|cuda:N|auto   where Warpwright runs (default auto)`;
const SENTENCES = [
  'A man is playing the guitar on a small stage.',
  'Someone performs music in front of an audience.',
  'The ferry leaves every twenty minutes.',
  'Boats cross the river three times an hour.',
  'The recipe needs two eggs and a cup of flour.',
];
/** Vectors have length 1. */
const LARGEST_DIFFERENCE = 1e-5;

/** @typedef {{ vectors: Float32Array, dims: number[], milliseconds: number }} Embeddings */

/** @param {import('./embed.mjs').Work['runtime']} runtime @param {string} device @returns {Promise<Embeddings>} */
function embedOn(runtime, device) {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL('embed.mjs', import.meta.url), { workerData: { runtime, device, sentences: SENTENCES } });
    worker.once('message', resolve);
    worker.once('error', reject);
    worker.once('exit', (code) => reject(new Error(`the worker of ${runtime} ended with ${code}`)));
  });
}

/** Scalar product of the vectors of two sentences. @param {Embeddings} embeddings @param {number} i @param {number} j */
function likeness({ vectors, dims: [, length] }, i, j) {
  let sum = 0;
  for (let k = 0; k < length; k++) sum += vectors[i * length + k] * vectors[j * length + k];
  return sum;
}

/** @param {string} device */
async function main(device) {
  if (!existsSync(new URL('model/onnx/model.onnx', import.meta.url))) throw new Error('model/ is missing; examples/embeddings/README.md says how to make it');
  const ours = await embedOn('warpwright', device);
  const theirs = await embedOn('onnxruntime-node', 'cpu');

  SENTENCES.forEach((sentence, i) => {
    const row = SENTENCES.map((_, j) => likeness(ours, i, j).toFixed(2).padStart(6)).join('');
    console.log(`${row}  ${sentence}`);
  });
  const difference = ours.vectors.reduce((most, value, i) => Math.max(most, Math.abs(value - theirs.vectors[i])), 0);
  console.log(`\nWarpwright ${ours.milliseconds.toFixed(1)} ms, onnxruntime-node ${theirs.milliseconds.toFixed(1)} ms for ${SENTENCES.length} sentences`);
  console.log(`Largest difference of ${ours.vectors.length} values: ${difference.toExponential(1)}`);
  if (!(difference <= LARGEST_DIFFERENCE)) throw new Error(`the vectors differ by more than ${LARGEST_DIFFERENCE}`);
}

try {
  const { values } = parseArgs({ options: { device: { type: 'string', default: 'auto' }, help: { type: 'boolean', default: false } } });
  if (values.help) console.log(USAGE);
  else await main(values.device);
} catch (error) {
  const { code, message } = /** @type {Error & { code?: string }} */ (error);
  console.error(code ? `${code}: ${message}` : message);
  process.exitCode = 1;
}
