// Random cases in the form of the case table. The seed and the number make the case, so a failure can be run again alone.
import { generator, hash } from '../helpers/random.mjs';

/** Draws for one case. @param {number} seed */
function draws(seed) {
  const random = generator(seed);
  const int = (low, high) => low + Math.floor(random() * (high - low + 1));
  const pick = (list) => list[int(0, list.length - 1)];
  const ints = (count, low, high) => Array.from({ length: count }, () => int(low, high));
  /** Sizes that are mostly small and now and then about a tile. */
  const size = (most = 40) => (random() < 0.2 ? Math.min(most, pick([1, 16, 17, 31, 32, 33, 64, 65, 127, 129])) : int(1, Math.min(most, 12)));
  const shuffled = (list) => list.map((value) => ({ value, key: random() })).sort((a, b) => a.key - b.key).map(({ value }) => value);
  return { random, int, pick, ints, size, shuffled, sizes: (count, most) => Array.from({ length: count }, () => size(most)) };
}

/** Geometry of windows that fit the padded image. */
function windows({ int, ints, pick }, rank, { pads: most = 2, dilate = true } = {}) {
  const kernel = ints(rank, 1, 4);
  const dilations = dilate ? kernel.map(() => pick([1, 1, 1, 2, 3])) : kernel.map(() => 1);
  const pads = ints(2 * rank, 0, most).map((pad, i) => Math.min(pad, kernel[i % rank] - 1));
  const image = kernel.map((size, i) => Math.max(1, (size - 1) * dilations[i] + 1 - pads[i] - pads[i + rank]) + int(0, 9));
  return { kernel, image, options: { strides: ints(rank, 1, 3), pads, ...(dilate ? { dilations } : {}) } };
}

const filters = (count) => ({ bias: { dims: [count], fill: 'normal' } });

/** op: from draws to inputs, options and operands given as options. */
const makers = {
  conv2d(d) {
    const { kernel, image, options } = windows(d, 2);
    const group = d.pick([1, 1, 1, 2, 3, 5]);
    const [each, out] = [group === 5 ? 1 : d.size(33), d.int(1, 8)];
    return { inputs: [[d.int(1, 3), group * each, ...image], [group * out, each, ...kernel]], options: { ...options, group }, named: d.random() < 0.5 ? filters(group * out) : undefined };
  },
  conv1d(d) {
    const { kernel, image, options } = windows(d, 1);
    const [channels, out] = d.sizes(2, 33);
    return { inputs: [[d.int(1, 3), channels, ...image], [out, channels, ...kernel]], options };
  },
  conv3d(d) {
    const { kernel, image, options } = windows(d, 3);
    const [channels, out] = d.ints(2, 1, 5);
    return { inputs: [[1, channels, ...image], [out, channels, ...kernel]], options };
  },
  convTranspose2d(d) {
    const { kernel, options } = windows(d, 2, { pads: 1 });
    const group = d.pick([1, 1, 2, 3]);
    const [each, out] = d.ints(2, 1, 17);
    const image = d.ints(2, 3, 9);
    return { inputs: [[d.int(1, 2), group * each, ...image], [group * each, out, ...kernel]], options: { ...options, group }, named: d.random() < 0.5 ? filters(group * out) : undefined };
  },
  matmul(d) {
    const [m, k, n] = d.sizes(3, 140);
    const batch = d.pick([[], [], [2], [2, 3]]);
    const options = { transA: d.random() < 0.4, transB: d.random() < 0.4 };
    const shared = d.random() < 0.5 ? [] : batch;
    return { inputs: [[...batch, ...(options.transA ? [k, m] : [m, k])], [...shared, ...(options.transB ? [n, k] : [k, n])]], options };
  },
  /** matmul with all that Gemm has. */
  gemm(d) {
    const [m, k, n] = d.sizes(3, 100);
    const options = { transA: d.random() < 0.5, transB: d.random() < 0.5, alpha: d.pick([1, 0.5, -2]), beta: d.pick([1, 0, 0.25]) };
    return { op: 'matmul', inputs: [options.transA ? [k, m] : [m, k], options.transB ? [n, k] : [k, n]], options, named: { c: { dims: [m, n], fill: 'normal' } } };
  },
  softmax(d) {
    const dims = d.sizes(d.int(1, 4), 65);
    return { inputs: [dims], options: { axis: d.int(-dims.length, dims.length - 1) } };
  },
  layerNorm(d) {
    const dims = d.sizes(d.int(2, 4), 65);
    return { inputs: [dims], options: { axis: d.int(1, dims.length - 1), epsilon: d.pick([1e-5, 1e-3]) } };
  },
  rmsNorm(d) {
    const dims = d.sizes(d.int(2, 4), 65);
    return { inputs: [dims], options: { axis: d.int(1, dims.length - 1), epsilon: d.pick([1e-5, 1e-3]) } };
  },
  maxPool2d: pooled,
  averagePool2d(d) {
    const made = pooled(d);
    return { ...made, options: { ...made.options, countIncludePad: d.random() < 0.5 } };
  },
  resize(d) {
    const dims = [d.int(1, 2), d.int(1, 3), d.int(1, 20), d.int(1, 20)];
    const mode = d.pick(['nearest', 'linear', 'cubic']);
    const coordinateTransformationMode = d.pick(['half_pixel', 'align_corners', 'asymmetric', 'pytorch_half_pixel']);
    const options = { mode, coordinateTransformationMode, sizes: d.ints(2, 1, 30), axes: [2, 3] };
    return { inputs: [dims], options, level: mode === 'nearest' ? 'exact' : undefined };
  },
  ...Object.fromEntries(['reduceSum', 'reduceMean', 'reduceMax', 'reduceMin', 'reduceL1', 'reduceL2', 'reduceSumSquare', 'reduceLogSumExp'].map((op) => [op, reduced])),
  slice(d) {
    const dims = d.sizes(d.int(1, 4), 33);
    const axes = d.shuffled(dims.map((_, axis) => axis)).slice(0, d.int(1, dims.length));
    const steps = axes.map(() => d.pick([1, 1, 2, 3, -1, -2]));
    const within = (axis) => d.int(-dims[axis] - 2, dims[axis] + 2);
    return { inputs: [dims], options: { axes, steps, starts: axes.map(within), ends: axes.map(within) } };
  },
  gather(d) {
    const dims = d.sizes(d.int(1, 4), 33);
    const axis = d.int(0, dims.length - 1);
    const index = { dims: d.ints(d.int(0, 2), 1, 9), fill: d.ints(7, -dims[axis], dims[axis] - 1), type: d.pick(['int64', 'int32']) };
    return { inputs: [dims, index], options: { axis } };
  },
  pad(d) {
    const dims = d.sizes(d.int(1, 4), 20);
    const mode = d.pick(['constant', 'edge', 'reflect', 'wrap']);
    const pads = [...dims, ...dims].map((size) => d.int(0, mode === 'reflect' || mode === 'wrap' ? Math.min(3, size - 1) : 3));
    return { inputs: [dims], options: { mode, pads, ...(mode === 'constant' ? { value: 2 } : {}) } };
  },
  transpose(d) {
    const dims = d.sizes(d.int(1, 5), 20);
    return { inputs: [dims], options: { perm: d.shuffled(dims.map((_, axis) => axis)) } };
  },
};

function pooled(d) {
  const { kernel, image, options } = windows(d, 2);
  return { inputs: [[d.int(1, 3), d.size(33), ...image]], options: { kernel, ...options, ceilMode: d.random() < 0.5 } };
}

function reduced(d) {
  const dims = d.sizes(d.int(1, 4), 40);
  const axes = d.shuffled(dims.map((_, axis) => axis)).slice(0, d.int(1, dims.length));
  return { inputs: [dims], options: { axes, keepDims: d.random() < 0.5 } };
}

/** What is swept. */
export const swept = Object.keys(makers);

/**
 * Cases of one sweep.
 * @param {string} name
 * @param {number} count
 * @param {number} seed
 */
export function sweep(name, count, seed) {
  return Array.from({ length: count }, (_, number) => {
    const d = draws(hash(`${name} ${seed} ${number}`));
    const { op = name, inputs, ...rest } = makers[name](d);
    const operands = inputs.map((input) => (Array.isArray(input) ? { dims: input, fill: 'normal', offset: d.pick([0, 0, 1]) } : input));
    const dtypes = [d.pick(['float32', 'float32', 'float32', 'float64', 'float16', 'bfloat16'])];
    const label = `${number} of seed ${seed}: ${operands.map(({ dims }) => `[${dims}]`).join(' ')} ${JSON.stringify(rest.options)}`;
    return { op, name: label, inputs: operands, oneForm: true, dtypes, ...rest };
  });
}
