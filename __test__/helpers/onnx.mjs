// Writes small ONNX models: as much of protocol buffers as that takes.

/** A whole number in groups of 7 bits. @param {number} number @returns {number[]} */
const varint = (number) => (number < 128 ? [number] : [(number % 128) + 128, ...varint(Math.floor(number / 128))]);

/** A field of a whole number. @param {number} field @param {number} number */
const whole = (field, number) => Buffer.from([...varint(field * 8), ...varint(number)]);

/** A field of bytes, text or other fields. @param {number} field @param {...(string | Uint8Array)} parts */
function nested(field, ...parts) {
  const content = Buffer.concat(parts.map((part) => Buffer.from(part)));
  return Buffer.concat([Buffer.from([...varint(field * 8 + 2), ...varint(content.length)]), content]);
}

/** An attribute of one whole number. @param {string} name @param {number} number */
export const int = (name, number) => nested(5, nested(1, name), whole(3, number), whole(20, 2));

/**
 * @param {string} op
 * @param {string[]} inputs
 * @param {string[]} outputs
 * @param {Buffer[]} [attributes]
 */
export const node = (op, inputs, outputs, attributes = []) =>
  nested(1, ...inputs.map((name) => nested(1, name)), ...outputs.map((name) => nested(2, name)), nested(4, op), ...attributes);

/** An input or output. @param {string} name @param {number} type its number in ONNX @param {(number | string)[]} dims */
export const value = (name, type, dims) =>
  [nested(1, name), nested(2, nested(1, whole(1, type), nested(2, ...dims.map((dim) => nested(1, typeof dim === 'number' ? whole(1, dim) : nested(2, dim))))))];

/** A float32 constant. @param {string} name @param {number[]} dims @param {Float32Array} data */
export const initializer = (name, dims, data) =>
  nested(5, ...dims.map((dim) => whole(1, dim)), whole(2, 1), nested(8, name), nested(9, Buffer.from(data.buffer, data.byteOffset, data.byteLength)));

/**
 * The bytes of a model of operator set 17.
 * @param {{ nodes: Buffer[], inputs: Buffer[][], outputs: Buffer[][], initializers?: Buffer[] }} graph
 */
export function model({ nodes, inputs, outputs, initializers = [] }) {
  const graph = [...nodes, nested(2, 'graph'), ...initializers, ...inputs.map((input) => nested(11, ...input)), ...outputs.map((output) => nested(12, ...output))];
  return new Uint8Array(Buffer.concat([whole(1, 8), nested(8, whole(2, 17)), nested(7, ...graph)]));
}
