// Finds lines of text: what the detection network takes, and boxes from the map that it gives.
import { cornersOf, grow, smallestRectangle } from './geometry.mjs';
import { resize, writePlanes } from './image.mjs';

/** @typedef {import('./geometry.mjs').Point} Point */
/** @typedef {{ corners: import('./geometry.mjs').Corners, score: number }} Box */
/** @typedef {{ values: Float32Array, width: number, height: number }} TextMap  for each pixel, how likely it is text */

const NORM = { mean: [0.485, 0.456, 0.406], deviation: [0.229, 0.224, 0.225] };
/** The network halves its input five times. */
const MULTIPLE = 32;
const PIXEL_IS_TEXT = 0.3;
const LEAST_SCORE = 0.6;
/** In pixels of the map; smaller boxes are specks. */
const LEAST_SIDE = 3;
/** The network is trained on shrunken boxes: area / perimeter times this brings them back. */
const UNCLIP = 1.5;

/**
 * The image as the detection network takes it: its longer side at most `side`, both multiples of 32.
 * @param {import('./image.mjs').Image} image @param {number} side
 */
export function detectionInput(image, side) {
  const scale = Math.min(1, side / Math.max(image.width, image.height));
  const round = (/** @type {number} */ length) => Math.max(MULTIPLE, Math.round((length * scale) / MULTIPLE) * MULTIPLE);
  const [width, height] = [round(image.width), round(image.height)];
  const data = new Float32Array(3 * width * height);
  writePlanes(resize(image, width, height), data, width, NORM);
  return { data, dims: [1, 3, height, width] };
}

/**
 * Connected areas of text, diagonal neighbours included: of each, the first and last pixel of every run in a row, which
 * is all that its hull needs.
 * @param {TextMap} map @returns {Point[][]}
 */
export function textAreas({ values, width, height }) {
  const seen = new Uint8Array(values.length);
  const isNew = (/** @type {number} */ i) => values[i] > PIXEL_IS_TEXT && seen[i] === 0;
  const areas = [];
  for (let start = 0; start < values.length; start++) {
    if (!isNew(start)) continue;
    /** @type {Point[]} */
    const ends = [];
    const pending = [start];
    while (pending.length > 0) {
      const from = /** @type {number} */ (pending.pop());
      if (!isNew(from)) continue;
      const y = Math.floor(from / width);
      let [left, right] = [from, from];
      while (left > y * width && isNew(left - 1)) left--;
      while (right < (y + 1) * width - 1 && isNew(right + 1)) right++;
      seen.fill(1, left, right + 1);
      ends.push([left - y * width, y], [right - y * width, y]);
      for (const next of [y - 1, y + 1]) {
        if (next < 0 || next >= height) continue;
        const shift = (next - y) * width;
        const [first, last] = [Math.max(left + shift - 1, next * width), Math.min(right + shift + 1, (next + 1) * width - 1)];
        for (let i = first; i <= last; i++) if (isNew(i)) pending.push(i);
      }
    }
    areas.push(ends);
  }
  return areas;
}

/**
 * Mean of the map inside a rectangle; 0 where no pixel's centre is inside.
 * @param {TextMap} map @param {import('./geometry.mjs').Rectangle} rectangle
 */
export function meanInside({ values, width, height }, rectangle) {
  const { centre, angle } = rectangle;
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
  const corners = cornersOf(rectangle);
  const range = (/** @type {0 | 1} */ axis, /** @type {number} */ size) => {
    const along = corners.map((corner) => corner[axis]);
    return [Math.max(0, Math.floor(Math.min(...along))), Math.min(size - 1, Math.ceil(Math.max(...along)))];
  };
  const [[left, right], [top, bottom]] = [range(0, width), range(1, height)];
  let [sum, count] = [0, 0];
  for (let y = top; y <= bottom; y++) {
    for (let x = left; x <= right; x++) {
      const [dx, dy] = [x - centre[0], y - centre[1]];
      if (Math.abs(dx * cos + dy * sin) > rectangle.width / 2 || Math.abs(dy * cos - dx * sin) > rectangle.height / 2) continue;
      sum += values[y * width + x];
      count++;
    }
  }
  return count > 0 ? sum / count : 0;
}

/**
 * Boxes of the lines of text, in pixels of the image that the map was made from.
 * @param {TextMap} map @param {{ width: number, height: number }} image @returns {Box[]}
 */
export function boxesOf(map, image) {
  const [scaleX, scaleY] = [image.width / map.width, image.height / map.height];
  const boxes = [];
  for (const area of textAreas(map)) {
    const tight = smallestRectangle(area);
    if (Math.min(tight.width, tight.height) < LEAST_SIDE) continue;
    const score = meanInside(map, tight);
    if (score < LEAST_SCORE) continue;
    const distance = ((tight.width * tight.height) / (2 * (tight.width + tight.height))) * UNCLIP;
    const onImage = (/** @type {Point} */ [x, y]) => /** @type {Point} */ ([(x + 0.5) * scaleX - 0.5, (y + 0.5) * scaleY - 0.5]);
    const corners = /** @type {import('./geometry.mjs').Corners} */ (cornersOf(grow(tight, distance)).map(onImage));
    boxes.push({ corners, score });
  }
  return boxes;
}
