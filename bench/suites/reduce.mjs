import { bytesPerElement } from '../inputs.mjs';

/** @typedef {import('../cases.mjs').Case} Case */

const HALVES = /** @type {const} */ (['float16', 'bfloat16']);

/**
 * A reduction that reads its operand once.
 * @param {string} op @param {number[]} dims @param {number[]} axes @param {number} [least] share of the copy rate @param {Partial<Case>} [more]
 * @returns {Case}
 */
function reduction(op, dims, axes, least, { type = 'float32', ...more } = {}) {
  const count = (/** @type {number[]} */ sizes) => sizes.reduce((a, b) => a * b, 1);
  const kept = dims.filter((_, axis) => !axes.includes(axis));
  return {
    name: `${op} ${dims.join(' x ')} over ${axes.join(', ')}${type === 'float32' ? '' : ` ${type}`}`,
    op,
    inputs: [dims],
    type,
    options: { axes },
    work: { bytes: bytesPerElement(type) * (count(dims) + count(kept)) },
    ...(least ? { bar: { of: 'limit', least } } : {}),
    ...more,
  };
}

/** First, middle and last axis, all of them, and axes apart. */
const places = (/** @type {number} */ side, /** @type {Partial<Case>} */ more = {}) => [
  reduction('reduceSum', [side, side], [0], 0.95, more),
  reduction('reduceSum', [side, side], [1], 0.95, more),
  reduction('reduceSum', [64, side, side / 64], [1], 0.95, more),
  reduction('reduceSum', [64, (side * side) / 2048, 32], [1], 0.8, more),
  reduction('reduceSum', [side, side], [0, 1], 0.95, more),
  reduction('reduceSum', [64, 128, side / 16, side / 512], [0, 2], undefined, more),
];

/** @type {import('../cases.mjs').Suite} */
export default {
  name: 'reduce',
  title: 'Reductions over axes; float32 unless a type is named',
  cases: {
    cuda: [
      ...places(8192),
      ...[32, 128, 1000, 65536, 1 << 20].map((columns) => reduction('reduceSum', [Math.floor(2 ** 26 / columns), columns], [1], 0.95)),
      ...['reduceMean', 'reduceMax', 'reduceProd', 'reduceL2'].map((op) => reduction(op, [8192, 8192], [1], 0.95)),
      reduction('reduceSum', [8192, 4096], [1], 0.95, { type: 'float64' }),
      ...HALVES.flatMap((type) => places(8192, { type })),
    ],
    cpu: [reduction('reduceSum', [1024, 1024], [0]), reduction('reduceSum', [1024, 1024], [1]), reduction('reduceMax', [1024, 1024], [1])],
    smoke: [reduction('reduceSum', [5, 7], [0]), reduction('reduceMax', [5, 7, 3], [0, 2]), reduction('reduceL2', [5, 7], [1], undefined, { type: 'float16' })],
  },
};
