import { bytesPerElement } from '../inputs.mjs';

/** @typedef {import('../cases.mjs').Case} Case */

const BAR = /** @type {const} */ ({ of: 'limit', least: 0.9 });
const HALVES = /** @type {const} */ (['float16', 'bfloat16']);

/**
 * An op that reads each of its operands once and writes a result of the same dims.
 * @param {string} op @param {number} rows @param {number} columns @param {Partial<Case> & { arity?: number }} [more]
 * @returns {Case}
 */
function streaming(op, rows, columns, { arity = 1, type = 'float32', ...more } = {}) {
  return {
    name: `${op} ${rows} x ${columns}${type === 'float32' ? '' : ` ${type}`}`,
    op,
    inputs: Array.from({ length: arity }, () => [rows, columns]),
    type,
    options: {},
    work: { bytes: bytesPerElement(type) * (arity + 1) * rows * columns },
    ...more,
  };
}

/** @param {number} rows @param {number} columns @param {Partial<Case>} [more] */
const rowOps = (rows, columns, more) => [
  streaming('softmax', rows, columns, { options: { axis: 1 }, ...more }),
  streaming('layerNorm', rows, columns, { options: { axis: 1 }, operands: { scale: [columns], bias: [columns] }, ...more }),
];

/** @param {Case['type']} type @param {Case['type']} to @returns {Case} */
const conversion = (type, to, side = 8192) => ({
  ...streaming('cast', side, side, { type, options: { to } }),
  name: `cast ${side} x ${side} ${type} to ${to}`,
  work: { bytes: (bytesPerElement(type) + bytesPerElement(to)) * side * side },
});

/** @param {number} side @param {Partial<Case>} more */
const pointOps = (side, more) => [
  ...['relu', 'gelu', 'silu', 'sigmoid', 'tanh', 'exp'].map((op) => streaming(op, side, side, more)),
  ...['add', 'mul'].map((op) => streaming(op, side, side, { arity: 2, ...more })),
];

/** @type {import('../cases.mjs').Suite} */
export default {
  name: 'elementwise',
  title: 'Elementwise ops, softmax and layerNorm; float32 unless a type is named',
  cases: {
    cuda: [
      ...pointOps(8192, { bar: BAR }),
      ...[128, 1000, 4096, 8192, 16384].flatMap((columns) => rowOps(Math.floor(2 ** 26 / columns), columns)),
      ...HALVES.flatMap((type) => [
        ...pointOps(8192, { type }),
        ...[128, 1000, 4096, 8192, 16384].flatMap((columns) => rowOps(Math.floor(2 ** 26 / columns), columns, { type })),
        conversion('float32', type),
        conversion(type, 'float32'),
      ]),
    ],
    cpu: [...pointOps(1024, {}), ...rowOps(1024, 1000)],
    smoke: [...pointOps(5, {}), ...rowOps(3, 7), ...rowOps(3, 7, { type: 'float16' }), conversion('float32', 'bfloat16', 5)],
  },
};
