/** @typedef {import('../cases.mjs').Case} Case */

const BAR = /** @type {const} */ ({ of: 'limit', least: 0.9 });
const FLOAT_BYTES = 4;

/**
 * An op that reads each of its operands once and writes a result of the same dims.
 * @param {string} op @param {number} rows @param {number} columns @param {Partial<Case> & { arity?: number }} [more]
 * @returns {Case}
 */
function streaming(op, rows, columns, { arity = 1, ...more } = {}) {
  return {
    name: `${op} ${rows} x ${columns}`,
    op,
    inputs: Array.from({ length: arity }, () => [rows, columns]),
    type: 'float32',
    options: {},
    work: { bytes: FLOAT_BYTES * (arity + 1) * rows * columns },
    ...more,
  };
}

/** @param {number} rows @param {number} columns */
const rowOps = (rows, columns) => [
  streaming('softmax', rows, columns, { options: { axis: 1 } }),
  streaming('layerNorm', rows, columns, { options: { axis: 1 }, operands: { scale: [columns], bias: [columns] } }),
];

/** @param {number} side @param {Partial<Case>} more */
const pointOps = (side, more) => [
  ...['relu', 'gelu', 'silu', 'sigmoid', 'tanh', 'exp'].map((op) => streaming(op, side, side, more)),
  ...['add', 'mul'].map((op) => streaming(op, side, side, { arity: 2, ...more })),
];

/** @type {import('../cases.mjs').Suite} */
export default {
  name: 'elementwise',
  title: 'Elementwise ops, softmax and layerNorm, float32',
  cases: {
    cuda: [
      ...pointOps(8192, { bar: BAR }),
      ...[128, 1000, 4096, 8192, 16384].flatMap((columns) => rowOps(Math.floor(2 ** 26 / columns), columns)),
    ],
    cpu: [...pointOps(1024, {}), ...rowOps(1024, 1000)],
    smoke: [...pointOps(5, {}), ...rowOps(3, 7)],
  },
};
