import { bytesPerElement, sizeOf } from '../inputs.mjs';

/** @typedef {import('../cases.mjs').Case} Case */

const BAR = /** @type {const} */ ({ of: 'limit', least: 0.97 });

/**
 * An expression that reads its operands once and writes a result of the first one's dims.
 * @param {string} text @param {Record<string, number[]>} operands @param {Partial<Case>} [more]
 * @returns {Case}
 */
function expression(text, operands, { type = 'float32', ...more } = {}) {
  const inputs = Object.values(operands);
  const elements = inputs.reduce((sum, dims) => sum + sizeOf(dims), sizeOf(inputs[0]));
  const shapes = Object.entries(operands).map(([name, dims]) => `${name} ${dims.join(' x ') || 'a number'}`).join(', ');
  return {
    name: `${text}: ${shapes}${type === 'float32' ? '' : ` ${type}`}`,
    op: 'evaluate',
    text,
    names: Object.keys(operands),
    inputs,
    type,
    options: {},
    work: { bytes: bytesPerElement(type) * elements },
    ...more,
  };
}

/** Layers of networks and the like, on rows x columns. @param {number} rows @param {number} columns @param {Partial<Case>} [more] */
function chains(rows, columns, more) {
  const [x, row, column] = [[rows, columns], [columns], [rows, 1]];
  return [
    expression('relu(x)', { x }, more),
    expression('gelu(x * w + b) + r', { x, w: row, b: row, r: x }, more),
    expression('silu(x) * y', { x, y: x }, more),
    expression('gelu(x + b)', { x, b: row }, more),
    expression('sigmoid(x * a + b) * y + c', { x, a: row, b: row, y: x, c: column }, more),
    expression('x * s + 1', { x, s: [] }, more),
  ];
}

/** Images by channel, rows of odd lengths, columns, whole tensors. @param {number} scale @param {Partial<Case>} [more] */
function broadcasts(scale, more) {
  const images = [scale, 64, 56, 56];
  const odd = [scale * 64 + 1, 3001];
  return [
    expression('relu(x * s + b)', { x: images, s: [64, 1, 1], b: [64, 1, 1] }, more),
    expression('relu(x * s + b)', { x: [scale, 56, 56, 64], s: [64], b: [64] }, more),
    expression('x * a + b', { x: odd, a: [odd[1]], b: [odd[0], 1] }, more),
    expression('x * (y + z) - y / 3', { x: [scale * 64, 4096], y: [scale * 64, 4096], z: [scale * 64, 4096] }, more),
  ];
}

/** @type {import('../cases.mjs').Suite} */
export default {
  name: 'fused',
  title: 'Expressions in one pass; float32 unless a type is named',
  cases: {
    cuda: [
      ...chains(8192, 8192, { bar: BAR }),
      ...broadcasts(256, { bar: BAR }),
      ...chains(8192, 8192, { type: 'float16' }),
      ...broadcasts(256, { type: 'float16' }),
      ...chains(8192, 8192, { type: 'bfloat16' }),
      ...chains(4096, 8192, { type: 'float64' }).slice(0, 3),
    ],
    cpu: [...chains(1024, 1024), ...broadcasts(4)],
    smoke: [...chains(3, 8), ...chains(3, 5, { type: 'float16' }), ...broadcasts(1)],
  },
};
