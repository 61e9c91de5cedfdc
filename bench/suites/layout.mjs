import { bytesPerElement, sizeOf } from '../inputs.mjs';

/** @typedef {import('../cases.mjs').Case} Case */

const INDEX_BYTES = 8;

/**
 * An op that moves `elements` elements to their places, or reads them: `bytes` says how many bytes that are, twice the
 * elements where it is left out.
 * @param {string} op @param {string} what @param {number[][]} inputs @param {Record<string, unknown>} options @param {number} elements
 * @param {Partial<Case> & { least?: number, bytes?: number }} [more]
 * @returns {Case}
 */
function moved(op, what, inputs, options, elements, { type = 'float32', least, bytes, ...more } = {}) {
  return {
    name: `${op} ${what}${type === 'float32' ? '' : ` ${type}`}`,
    op,
    inputs,
    type,
    options,
    work: { bytes: bytes ?? 2 * elements * bytesPerElement(type) },
    ...(least ? { bar: { of: 'limit', least } } : {}),
    ...more,
  };
}

/** @param {number[]} dims @param {number[]} perm @param {Partial<Case> & { least?: number }} [more] */
const transpose = (dims, perm, more) => moved('transpose', `${dims.join(' x ')} to ${perm.join(', ')}`, [dims], { perm }, sizeOf(dims), { least: 0.88, ...more });

/** @param {number[][]} inputs @param {number} axis @param {Partial<Case>} [more] */
const concat = (inputs, axis, more) =>
  moved('concat', `${inputs.length} of ${inputs[0].join(' x ')} along ${axis}`, inputs, { axis }, inputs.reduce((sum, dims) => sum + sizeOf(dims), 0), { list: true, ...more });

/** @param {number[]} dims @param {number} axis @param {number} numOutputs @param {Partial<Case>} [more] */
const split = (dims, axis, numOutputs, more) => moved('split', `${dims.join(' x ')} along ${axis} into ${numOutputs}`, [dims], { axis, numOutputs }, sizeOf(dims), more);

/** @param {number[]} dims @param {number[]} starts @param {number[]} ends @param {number[]} [steps] @param {Partial<Case>} [more] */
function slice(dims, starts, ends, steps = dims.map(() => 1), more = {}) {
  const size = sizeOf(dims.map((_, axis) => Math.ceil((ends[axis] - starts[axis]) / steps[axis])));
  const name = dims.map((dim, axis) => `${starts[axis]}:${ends[axis]}${steps[axis] > 1 ? `:${steps[axis]}` : ''} of ${dim}`).join(', ');
  return moved('slice', name, [dims], { starts, ends, steps }, size, more);
}

/** @param {number[]} dims @param {number[]} before @param {'constant' | 'reflect' | 'edge' | 'wrap'} mode @param {Partial<Case>} [more] */
function pad(dims, before, mode, more) {
  const size = sizeOf(dims.map((dim, axis) => dim + 2 * before[axis]));
  return moved('pad', `${dims.join(' x ')} by ${before.join(', ')}, ${mode}`, [dims], { pads: [...before, ...before], mode }, (size + sizeOf(dims)) / 2, more);
}

/** @param {string} op @param {number[]} dims @param {number[]} indices @param {number} axis @param {Partial<Case>} [more] */
function indexed(op, dims, indices, axis, more) {
  const count = sizeOf(indices);
  const chosen = op === 'gather' ? (sizeOf(dims) / dims[axis]) * count : count;
  const all = op === 'scatterElements' ? 2 * sizeOf(dims) : 0;
  const inputs = op === 'scatterElements' ? [dims, indices, indices] : [dims, indices];
  return moved(op, `${indices.join(' x ')} of ${dims.join(' x ')} along ${axis}`, inputs, { axis }, chosen, {
    indices: { operand: 1, below: dims[axis] },
    bytes: (all + 2 * chosen) * bytesPerElement(more?.type ?? 'float32') + INDEX_BYTES * count,
    ...more,
  });
}

/** @param {number[]} dims @param {number} axis @param {Partial<Case>} [more] */
const argMax = (dims, axis, more) =>
  moved('argMax', `${dims.join(' x ')} along ${axis}`, [dims], { axis, keepDims: false }, 0, {
    bytes: sizeOf(dims) * bytesPerElement(more?.type ?? 'float32') + (INDEX_BYTES * sizeOf(dims)) / dims[axis],
    ...more,
  });

const transposes = [
  transpose([8192, 8192], [1, 0]),
  transpose([8191, 8193], [1, 0]),
  transpose([64, 1024, 1024], [0, 2, 1]),
  transpose([16, 2048, 32, 64], [0, 2, 1, 3]),
  transpose([64, 256, 56, 56], [0, 2, 3, 1]),
  transpose([64, 56, 56, 256], [0, 3, 1, 2]),
  transpose([64, 3, 512, 512], [0, 2, 3, 1]),
  transpose([64, 512, 512, 3], [0, 3, 1, 2]),
  transpose([64, 4, 512, 512], [0, 2, 3, 1]),
  transpose([1 << 24, 4], [1, 0]),
  transpose([32, 16, 64, 32, 64], [4, 3, 2, 1, 0]),
  transpose([64, 12, 65536], [1, 0, 2]),
  transpose([8192, 8192], [1, 0], { type: 'float64' }),
  transpose([16384, 8192], [1, 0], { type: 'float16' }),
  transpose([64, 3, 512, 512], [0, 2, 3, 1], { type: 'float16' }),
  transpose([64, 512, 512, 3], [0, 3, 1, 2], { type: 'float16' }),
  transpose([64, 512, 512, 3], [0, 3, 1, 2], { type: 'uint8' }),
  transpose([16384, 16384], [1, 0], { type: 'uint8' }),
];

const parts = [
  concat(Array(2).fill([8192, 4096]), 1),
  concat(Array(4).fill([64, 64, 56, 56]), 1),
  concat(Array(3).fill([8192, 2731]), 1),
  concat(Array(64).fill([1024, 1024]), 0),
  concat(Array(64).fill([4096, 128]), 1),
  split([8192, 12288], 1, 3),
  split([64, 256, 56, 56], 1, 4),
  split([8192, 8193], 1, 3),
  slice([8192, 8192], [0, 1024], [8192, 7168]),
  slice([8192, 8192], [1, 1], [8191, 8191]),
  slice([8192, 8192], [0, 0], [8192, 8192], [1, 2]),
  pad([64, 64, 112, 112], [0, 0, 1, 1], 'constant'),
  pad([64, 64, 112, 112], [0, 0, 3, 3], 'reflect'),
  pad([64, 64, 112, 112], [0, 0, 8, 8], 'edge'),
  pad([64, 64, 112, 112], [0, 0, 8, 8], 'wrap'),
];

const byIndex = [
  indexed('gather', [50257, 768], [64, 1024], 0),
  indexed('gather', [50257, 768], [64, 1024], 0, { type: 'float16' }),
  indexed('gather', [1 << 24, 1], [1 << 24], 0),
  indexed('gather', [4096, 8192], [4096], 1),
  indexed('gatherElements', [8192, 8192], [8192, 8192], 1),
  indexed('gatherElements', [8192, 8192], [8192, 8192], 0),
  indexed('scatterElements', [8192, 8192], [8192, 1024], 1),
  indexed('scatterElements', [8192, 8192], [1024, 8192], 0),
  argMax([8192, 8192], 1),
  argMax([8192, 8192], 0),
  argMax([64, 1024, 1024], 1),
  argMax([1 << 21, 32], 1),
  argMax([64, 1 << 20], 1),
  argMax([1, 1 << 26], 1),
  argMax([8192, 16384], 1, { type: 'float16' }),
];

/** @type {import('../cases.mjs').Suite} */
export default {
  name: 'layout',
  title: 'Elements moved and found; float32 unless a type is named, indices of int64',
  cases: {
    cuda: [...transposes, ...parts, ...byIndex],
    cpu: [transpose([2048, 2048], [1, 0], { least: undefined }), indexed('gather', [50257, 768], [1024], 0), argMax([2048, 2048], 1)],
    smoke: [
      transpose([5, 7], [1, 0]), concat([[5, 7], [5, 2]], 1), split([5, 6], 1, 3), slice([5, 7], [1, 1], [4, 6]), pad([5, 7], [1, 2], 'reflect'),
      indexed('gather', [5, 7], [3], 0), indexed('gatherElements', [5, 7], [3, 7], 0), indexed('scatterElements', [5, 7], [1, 7], 0), argMax([5, 7], 1, { type: 'float16' }),
    ],
  },
};
