// Operands of a case: seeded random values, on the device that is measured.

const BLOCK = 1_048_573;
const BYTES = { float32: 4, float64: 8, float16: 2, bfloat16: 2, uint8: 1 };

/** @param {number[]} dims */
export const sizeOf = (dims) => dims.reduce((product, dim) => product * dim, 1);

/** @param {Case['type']} type */
export const bytesPerElement = (type) => BYTES[type];

/** Normal values (Box and Muller) from a linear congruential generator. */
function fillRandom(/** @type {Float32Array | Float64Array} */ array, seed = 1) {
  let state = seed >>> 0;
  const uniform = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (state + 1) / 2 ** 32;
  };
  for (let i = 0; i < array.length; i++) array[i] = Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
}

/**
 * Random values in place. A block of prime length is repeated, which is quick and puts different values above each
 * other in any matrix.
 * @template {Float32Array | Float64Array} A
 * @param {A} array @param {number} [seed] @returns {A}
 */
export function randomise(array, seed) {
  const block = array.subarray(0, Math.min(BLOCK, array.length));
  fillRandom(block, seed);
  for (let start = block.length; start < array.length; start += block.length) {
    array.set(block.subarray(0, array.length - start), start);
  }
  return array;
}

/** Indices from 0 on by the same generator, a block of prime length repeated. @param {number} length @param {number} below */
function randomIndices(length, below) {
  const indices = new BigInt64Array(length);
  const block = indices.subarray(0, Math.min(BLOCK, length));
  let state = 1;
  for (let i = 0; i < block.length; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    block[i] = BigInt(Math.floor((state / 2 ** 32) * below));
  }
  for (let start = block.length; start < length; start += block.length) indices.set(block.subarray(0, length - start), start);
  return indices;
}

/**
 * @typedef {import('../index.mjs').Tensor} Tensor
 * @typedef {typeof import('../index.mjs')} Api
 * @typedef {import('./cases.mjs').Case} Case
 */

/**
 * Required operands as a list, optional ones by their option's name, all on the device.
 * @param {Api} api @param {Case} one @param {import('../index.mjs').Device} device
 * @returns {Promise<{ inputs: Tensor[], operands: Record<string, Tensor>, dispose(): void }>}
 */
export async function makeOperands({ Tensor }, one, device) {
  let seed = 0;
  const make = async (/** @type {number[]} */ dims, /** @type {number | undefined} */ position = undefined) => {
    if (one.indices && position === one.indices.operand) {
      return new Tensor(randomIndices(sizeOf(dims), one.indices.below), dims).to(device);
    }
    const numbers = one.type === 'float64' ? new Float64Array(sizeOf(dims)) : new Float32Array(sizeOf(dims));
    return new Tensor(randomise(numbers, ++seed), dims).to({ type: one.type, device });
  };
  /** @type {Tensor[]} */
  const inputs = [];
  for (const [position, dims] of one.inputs.entries()) inputs.push(await make(dims, position));
  /** @type {Record<string, Tensor>} */
  const operands = {};
  for (const [name, dims] of Object.entries(one.operands ?? {})) operands[name] = await make(dims);
  const dispose = () => [...inputs, ...Object.values(operands)].forEach((tensor) => tensor.dispose());
  return { inputs, operands, dispose };
}
