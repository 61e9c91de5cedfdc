// Conformance cases in one file, compressed: a line of JSON that says what lies behind it, then models and elements as they are.
import { brotliCompressSync, brotliDecompressSync, constants } from 'node:zlib';

/**
 * @typedef {{ type: string, dims: number[], bytes: Uint8Array }} Elements
 * @typedef {{ name: string, model: Uint8Array, inputs: Elements[], outputs: Elements[] }} Case
 */

/** @param {Case[]} cases @returns {Buffer} */
export function pack(cases) {
  const about = (/** @type {Elements} */ { type, dims }) => ({ type, dims });
  const head = cases.map(({ name, model, inputs, outputs }) => ({ name, model: model.length, inputs: inputs.map(about), outputs: outputs.map(about) }));
  const parts = cases.flatMap(({ model, inputs, outputs }) => [model, ...[...inputs, ...outputs].map(({ bytes }) => bytes)]);
  const params = { [constants.BROTLI_PARAM_LGWIN]: 24 };
  return brotliCompressSync(Buffer.concat([Buffer.from(`${JSON.stringify(head)}\n`), ...parts]), { params });
}

const SIZES = /** @type {Record<string, number>} */ ({
  float64: 8, int64: 8, uint64: 8, float32: 4, int32: 4, uint32: 4, float16: 2, bfloat16: 2, int16: 2, uint16: 2, int8: 1, uint8: 1, bool: 1,
});

/** @param {Uint8Array} packed @returns {Case[]} */
export function unpack(packed) {
  const bytes = brotliDecompressSync(packed);
  let at = bytes.indexOf('\n');
  const head = JSON.parse(bytes.toString('utf8', 0, at));
  at += 1;
  const take = (/** @type {number} */ length) => new Uint8Array(bytes.subarray(at, (at += length)));
  const elements = (/** @type {{ type: string, dims: number[] }} */ { type, dims }) => ({ type, dims, bytes: take(dims.reduce((product, dim) => product * dim, SIZES[type])) });
  return head.map((/** @type {any} */ { name, model, inputs, outputs }) => ({ name, model: take(model), inputs: inputs.map(elements), outputs: outputs.map(elements) }));
}

/** Lines of a list of cases: the name and what stands behind it. @param {string} text @returns {Map<string, string>} */
export function listed(text) {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(lines.map((line) => /** @type {[string, string]} */ ([line.split(':')[0], line.slice(line.indexOf(': ') + 2)])));
}
