// Reads lines of text: cut-outs that stand upright, batches of like widths for the recognition network, its answers as text.
import { distance } from './geometry.mjs';
import { blank, writePlanes } from './image.mjs';

/** @typedef {import('./image.mjs').Image} Image */
/** @typedef {{ text: string, confidence: number }} Reading */

const HEIGHT = 48;
const NORM = { mean: [0.5, 0.5, 0.5], deviation: [0.5, 0.5, 0.5] };
/** Widths of batches are multiples of this, so that few shapes occur. */
const WIDTH_STEP = 64;
const LEAST_WIDTH = 320;
const LARGEST_BATCH = 8;
/** Samples for one pixel of the cut-out, in each direction, at most. */
const MOST_SAMPLES = 4;
/** Found on pages in typefaces that the samples do not use: 2 of 926 spaces fall below, none of 3,105 other gaps above. */
const LEAST_SPACE = 0.015;

/**
 * Adds the colour at (x, y) to `sums`: bilinear, the edge repeated outside.
 * @param {Image} image @param {number} x @param {number} y @param {number[]} sums
 */
export function addSample({ width, height, data }, x, y, sums) {
  const column = Math.min(Math.max(x, 0), width - 1);
  const row = Math.min(Math.max(y, 0), height - 1);
  const left = Math.floor(column);
  const top = Math.floor(row);
  const across = column - left;
  const down = row - top;
  const here = (top * width + left) * 3;
  const next = left < width - 1 ? 3 : 0;
  const below = top < height - 1 ? width * 3 : 0;
  for (let c = here; c < here + 3; c++) {
    const upper = data[c] + (data[c + next] - data[c]) * across;
    const lower = data[c + below] + (data[c + below + next] - data[c + below]) * across;
    sums[c - here] += upper + (lower - upper) * down;
  }
}

/**
 * The box turned upright and brought to a height of 48, as wide as its shape asks. Where the source is finer, several
 * samples make one pixel.
 * @param {Image} image @param {import('./geometry.mjs').Corners} corners @returns {Image}
 */
export function cutOut(image, [topLeft, topRight, , bottomLeft]) {
  const [wide, high] = [distance(topLeft, topRight), distance(topLeft, bottomLeft)];
  const cut = blank(Math.max(1, Math.round((wide / high) * HEIGHT)), HEIGHT);
  const samples = Math.min(MOST_SAMPLES, Math.max(1, Math.ceil(high / HEIGHT)));
  const total = samples * samples;
  const sums = [0, 0, 0];
  for (let i = 0; i < cut.width * HEIGHT; i++) {
    sums.fill(0);
    for (let k = 0; k < total; k++) {
      const u = ((i % cut.width) + ((k % samples) + 0.5) / samples) / cut.width;
      const v = (Math.floor(i / cut.width) + (Math.floor(k / samples) + 0.5) / samples) / HEIGHT;
      const x = topLeft[0] + (topRight[0] - topLeft[0]) * u + (bottomLeft[0] - topLeft[0]) * v;
      const y = topLeft[1] + (topRight[1] - topLeft[1]) * u + (bottomLeft[1] - topLeft[1]) * v;
      addSample(image, x, y, sums);
    }
    for (let c = 0; c < 3; c++) cut.data[i * 3 + c] = sums[c] / total;
  }
  return cut;
}

/** @param {number} width */
const paddedWidth = (width) => Math.max(LEAST_WIDTH, Math.ceil(width / WIDTH_STEP) * WIDTH_STEP);

/**
 * Numbers of cut-outs that go together: of like widths, a few at a time.
 * @param {number[]} widths @returns {{ width: number, members: number[] }[]}
 */
export function batchesOf(widths) {
  /** @type {{ width: number, members: number[] }[]} */
  const batches = [];
  const byWidth = [...widths.keys()].sort((a, b) => widths[a] - widths[b]);
  for (const index of byWidth) {
    const width = paddedWidth(widths[index]);
    const open = batches.at(-1);
    if (open && open.width === width && open.members.length < LARGEST_BATCH) open.members.push(index);
    else batches.push({ width, members: [index] });
  }
  return batches;
}

/**
 * Cut-outs side by side as the recognition network takes them, the rest of each row mid-grey.
 * @param {Image[]} cuts @param {number} width
 */
export function recognitionInput(cuts, width) {
  const size = 3 * HEIGHT * width;
  const data = new Float32Array(cuts.length * size);
  cuts.forEach((cut, i) => writePlanes(cut, data.subarray(i * size, (i + 1) * size), width, NORM));
  return { data, dims: [cuts.length, 3, HEIGHT, width] };
}

/** The most likely class of the step that starts at `start`. @param {Float32Array} likelihoods @param {number} start @param {number} classes */
function likeliest(likelihoods, start, classes) {
  let best = start;
  for (let i = start + 1; i < start + classes; i++) if (likelihoods[i] > likelihoods[best]) best = i;
  return best - start;
}

/**
 * The most likely class of every step; repeats count once, and class 0 is the gap between characters. The last class is
 * the space. The network was trained on a script that has few, and calls most of them gaps; but in such gaps it leaves
 * the space a trace of likelihood, and that decides. The confidence is the mean likelihood of the characters.
 * @param {Float32Array} likelihoods  steps * characters.length, row-major
 * @param {string[]} characters  by class
 * @returns {Reading}
 */
export function decodeCtc(likelihoods, characters) {
  const classes = characters.length;
  const space = classes - 1;
  let [text, sum, count, previous, isApart] = ['', 0, 0, 0, false];
  for (let start = 0; start < likelihoods.length; start += classes) {
    const best = likeliest(likelihoods, start, classes);
    if (best === space || (best === 0 && likelihoods[start + space] >= LEAST_SPACE)) isApart = true;
    else if (best !== 0 && best !== previous) {
      text += (isApart && count > 0 ? ' ' : '') + characters[best];
      sum += likelihoods[start + best];
      count++;
      isApart = false;
    }
    previous = best;
  }
  return { text, confidence: count > 0 ? sum / count : 0 };
}

/** The characters of a dictionary file, one a line, by class: the gap first, the space last. @param {string} text */
export const charactersOf = (text) => ['', ...text.replace(/\r?\n$/, '').split(/\r?\n/), ' '];
