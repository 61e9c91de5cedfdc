// A dense network of one hidden layer on images of 64 pixels, with its gradient, in plain JavaScript: what a client trains.

const [INPUTS, HIDDEN, CLASSES] = [64, 32, 10];
const SECOND = (INPUTS + 1) * HIDDEN;

/** Numbers that describe a network. */
export const SIZE = SECOND + (HIDDEN + 1) * CLASSES;

/** Starting weights; the same for the same seed. @param {number} seed */
export function startWeights(seed) {
  let state = seed;
  const uniform = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 31 - 1;
  };
  return Float32Array.from({ length: SIZE }, () => 0.15 * uniform());
}

/** tanh of the hidden layer. @param {Float32Array} weights @param {Float32Array} pixels */
function hiddenOf(weights, pixels) {
  return Float64Array.from({ length: HIDDEN }, (_, unit) => {
    const row = unit * (INPUTS + 1);
    let sum = weights[row + INPUTS];
    for (let i = 0; i < INPUTS; i++) sum += weights[row + i] * pixels[i];
    return Math.tanh(sum);
  });
}

/** Class probabilities. @param {Float32Array} weights @param {Float64Array} hidden */
function probabilities(weights, hidden) {
  const scores = Float64Array.from({ length: CLASSES }, (_, unit) => {
    const row = SECOND + unit * (HIDDEN + 1);
    let sum = weights[row + HIDDEN];
    for (let i = 0; i < HIDDEN; i++) sum += weights[row + i] * hidden[i];
    return sum;
  });
  const most = Math.max(...scores);
  const powers = scores.map((score) => Math.exp(score - most));
  const total = powers.reduce((sum, power) => sum + power, 0);
  return powers.map((power) => power / total);
}

/**
 * Gradient of the mean cross entropy of images.
 * @param {Float32Array} weights
 * @param {{ pixels: Float32Array, labels: Uint8Array }} images
 * @returns {Float32Array}
 */
export function gradient(weights, { pixels, labels }) {
  const sums = new Float64Array(SIZE);
  labels.forEach((label, index) => {
    const image = pixels.subarray(index * INPUTS, (index + 1) * INPUTS);
    const hidden = hiddenOf(weights, image);
    const errors = probabilities(weights, hidden).map((p, unit) => p - Number(unit === label));
    const back = new Float64Array(HIDDEN);
    errors.forEach((error, unit) => {
      const row = SECOND + unit * (HIDDEN + 1);
      sums[row + HIDDEN] += error;
      for (let i = 0; i < HIDDEN; i++) {
        sums[row + i] += error * hidden[i];
        back[i] += error * weights[row + i];
      }
    });
    back.forEach((value, unit) => {
      const [row, slope] = [unit * (INPUTS + 1), value * (1 - hidden[unit] ** 2)];
      sums[row + INPUTS] += slope;
      for (let i = 0; i < INPUTS; i++) sums[row + i] += slope * image[i];
    });
  });
  return Float32Array.from(sums, (sum) => sum / labels.length);
}

/**
 * Share of images whose likeliest class is right.
 * @param {Float32Array} weights
 * @param {{ pixels: Float32Array, labels: Uint8Array }} images
 */
export function accuracy(weights, { pixels, labels }) {
  const right = labels.filter((label, index) => {
    const p = probabilities(weights, hiddenOf(weights, pixels.subarray(index * INPUTS, (index + 1) * INPUTS)));
    return p.every((value, unit) => unit === label || value < p[label]);
  });
  return right.length / labels.length;
}
