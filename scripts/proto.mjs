// Reads what scripts want to know of ONNX files: as much of protocol buffers as that takes.

/**
 * The fields of a message, each with its number and its content: bytes, or a whole number.
 * @param {Uint8Array} bytes
 * @returns {{ field: number, value: Uint8Array | bigint }[]}
 */
export function fields(bytes) {
  const found = [];
  let at = 0;
  const varint = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++];
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return value;
    }
  };
  const take = (/** @type {number} */ length) => bytes.subarray(at, (at += length));
  while (at < bytes.length) {
    const key = Number(varint());
    const kind = key & 7;
    found.push({ field: key >> 3, value: kind === 0 ? varint() : take(kind === 2 ? Number(varint()) : kind === 1 ? 8 : 4) });
  }
  return found;
}

/** Contents of one field. @param {Uint8Array} bytes @param {number} number @returns {any[]} */
const all = (bytes, number) => fields(bytes).filter(({ field }) => field === number).map(({ value }) => value);

/** @param {Uint8Array} bytes */
const text = (bytes) => Buffer.from(bytes).toString();

/** Operators of nodes, with those in graphs among their attributes. @param {Uint8Array[]} nodes @returns {string[]} */
function operatorsOf(nodes) {
  return nodes.flatMap((node) => {
    const graphs = all(node, 5).flatMap((attribute) => all(attribute, 6));
    const [domain] = all(node, 7).map(text);
    const name = text(all(node, 4)[0]);
    return [domain && domain !== 'ai.onnx' ? `${domain}.${name}` : name, ...graphs.flatMap((graph) => operatorsOf(all(graph, 1)))];
  });
}

/** Names of the operators of a model, each once. @param {Uint8Array} model */
export const operators = (model) => [...new Set(operatorsOf(all(model, 7).flatMap((graph) => all(graph, 1))))];

/** Version of ONNX's own operator set. @param {Uint8Array} model */
export const version = (model) => Number(all(model, 8).filter((set) => all(set, 1).every((name) => name.length === 0)).flatMap((set) => all(set, 2))[0]);

/** Element types by their numbers in ONNX. */
const TYPES = /** @type {Record<number, string>} */ ({
  1: 'float32', 2: 'uint8', 3: 'int8', 4: 'uint16', 5: 'int16', 6: 'int32', 7: 'int64', 9: 'bool', 10: 'float16', 11: 'float64', 12: 'uint32', 13: 'uint64',
  16: 'bfloat16',
});

/**
 * A tensor in a file of its own; undefined where its elements are not stored raw.
 * @param {Uint8Array} bytes
 * @returns {{ type: string, dims: number[], bytes: Uint8Array } | undefined}
 */
export function tensor(bytes) {
  const dims = all(bytes, 1).flatMap((value) => (typeof value === 'bigint' ? [Number(value)] : fields(value).map(() => NaN)));
  const type = TYPES[Number(all(bytes, 2)[0] ?? 0)];
  const [raw = new Uint8Array()] = all(bytes, 9);
  return type && (raw.length > 0 || dims.includes(0)) ? { type, dims, bytes: raw } : undefined;
}
