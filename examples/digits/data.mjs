// Reads the committed digits and weights. digits.bin and weights.bin are described in prepare.py and train.py.
import { readFile } from 'node:fs/promises';

const here = (/** @type {string} */ name) => new URL(name, import.meta.url);
const readJson = async (/** @type {string} */ name) => JSON.parse(await readFile(here(name), 'utf8'));

/**
 * @typedef {object} Digits
 * @property {number} count
 * @property {number} height
 * @property {number} width
 * @property {Float32Array} pixels  count images, row-major, 0 to 1
 * @property {Uint8Array} labels
 */

/**
 * The held-back images: the ones that took no part in training.
 * @returns {Promise<Digits>}
 */
export const loadHeldBack = () => load(true);

/**
 * The images of the training.
 * @returns {Promise<Digits>}
 */
export const loadTraining = () => load(false);

/**
 * @param {boolean} heldBack
 * @returns {Promise<Digits>}
 */
async function load(heldBack) {
  const { count, training, height, width, maximum } = await readJson('digits.json');
  const bytes = await readFile(here('digits.bin'));
  const area = height * width;
  if (bytes.length !== count * (area + 1)) {
    throw new Error(`digits.bin has ${bytes.length} bytes, expected ${count * (area + 1)}`);
  }
  const [start, end] = heldBack ? [training, count] : [0, training];
  const pixels = Float32Array.from(bytes.subarray(start * area, end * area), (value) => value / maximum);
  const labels = Uint8Array.from(bytes.subarray(count * area + start, count * area + end));
  return { count: end - start, height, width, pixels, labels };
}

/**
 * The trained weights by name, as views of one buffer.
 * @returns {Promise<Map<string, { data: Float32Array, dims: number[] }>>}
 */
export async function loadWeights() {
  const { tensors } = await readJson('weights.json');
  const values = floatsOf(await readFile(here('weights.bin')));
  const weights = new Map();
  let offset = 0;
  for (const [name, dims] of Object.entries(/** @type {Record<string, number[]>} */ (tensors))) {
    const size = dims.reduce((product, dim) => product * dim, 1);
    weights.set(name, { data: values.subarray(offset, offset + size), dims });
    offset += size;
  }
  if (offset !== values.length) {
    throw new Error(`weights.bin has ${values.length} numbers, weights.json names ${offset}`);
  }
  return weights;
}

/** Little-endian float32, whatever the byte order of this machine and the offset of the buffer. */
function floatsOf(/** @type {Buffer} */ bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Float32Array.from({ length: bytes.byteLength / 4 }, (_, i) => view.getFloat32(i * 4, true));
}
