/** @typedef {import('../cases.mjs').Case} Case */

const MIB = 2 ** 20;
const FLOAT_BYTES = 4;
const BARS = /** @type {const} */ ({
  pinned: { of: 'peer', least: 0.95 },
  plain: { of: 'peer', least: 2 },
});

/**
 * One array from host to device, or back.
 * @param {'upload' | 'download'} op @param {number} bytes @param {'pinned' | 'plain'} memory @param {Partial<Case>} [more]
 * @returns {Case}
 */
function copy(op, bytes, memory, more) {
  const amount = bytes >= MIB ? `${bytes / MIB} MiB` : `${bytes} bytes`;
  const where = `${op === 'upload' ? 'from' : 'to'} ${memory} memory`;
  return { name: `${op} ${amount} ${where}`, op, inputs: [[bytes / FLOAT_BYTES]], type: 'float32', memory, work: { bytes }, ...more };
}

/** @type {import('../cases.mjs').Suite} */
export default {
  name: 'copies',
  title: 'Copies between host and device',
  cases: {
    cuda: [1, 4, 16, 64, 256].flatMap((mib) => [
      copy('upload', mib * MIB, 'pinned', { bar: BARS.pinned }),
      copy('download', mib * MIB, 'pinned', { bar: BARS.pinned }),
      copy('upload', mib * MIB, 'plain', { bar: BARS.plain }),
      copy('download', mib * MIB, 'plain', { bar: BARS.plain }),
    ]),
    cpu: [],
    smoke: [copy('upload', 64, 'pinned'), copy('upload', 64, 'plain'), copy('download', 64, 'pinned')],
  },
};
