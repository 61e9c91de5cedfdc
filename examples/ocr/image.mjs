// Pictures in memory: decoding and encoding by @napi-rs/image, resizing and the layout that networks take by our own loops.
import { readFile, writeFile } from 'node:fs/promises';
import { Transformer } from '@napi-rs/image';

/** @typedef {{ width: number, height: number, data: Uint8ClampedArray }} Image  three bytes a pixel: red, green, blue */

/** Channels of a pixel, by the decoder's number for its colour type; deeper ones are refused by name. */
const CHANNELS = new Map([[0, 1], [1, 2], [2, 3], [3, 4]]);

/** @param {number} width @param {number} height @returns {Image} */
export const blank = (width, height) => ({ width, height, data: new Uint8ClampedArray(width * height * 3) });

/**
 * Reads a PNG, JPEG or WebP file, turned upright as its EXIF data says.
 * @param {string | URL} path @returns {Promise<Image>}
 */
export async function load(path) {
  const bytes = await readFile(path);
  const { width, height, colorType, orientation = 1 } = await new Transformer(bytes).metadata(true);
  const channels = CHANNELS.get(colorType);
  if (channels === undefined) throw new Error(`${path}: expected 8 bits a channel, got colour type ${colorType}`);
  const pixels = await new Transformer(bytes).rotate().rawPixels();
  const turned = orientation > 4;
  return toRgb(pixels, turned ? height : width, turned ? width : height, channels);
}

/**
 * Three channels of one to four: grey is repeated, transparency lies on white.
 * @param {Uint8Array} pixels @param {number} width @param {number} height @param {number} channels @returns {Image}
 */
export function toRgb(pixels, width, height, channels) {
  const image = blank(width, height);
  const colours = channels < 3 ? 1 : 3;
  const hasAlpha = channels % 2 === 0;
  for (let i = 0; i < width * height; i++) {
    const opacity = hasAlpha ? pixels[i * channels + colours] / 255 : 1;
    for (let c = 0; c < 3; c++) image.data[i * 3 + c] = 255 + (pixels[i * channels + (c % colours)] - 255) * opacity;
  }
  return image;
}

/** @param {Image} image @param {string | URL} path */
export async function savePng({ width, height, data }, path) {
  const rgba = new Uint8ClampedArray(width * height * 4).fill(255);
  for (let i = 0; i < width * height; i++) rgba.set(data.subarray(i * 3, i * 3 + 3), i * 4);
  await writeFile(path, await Transformer.fromRgbaPixels(rgba, width, height).png());
}

/**
 * Which inputs each output of a linear resampling takes, with weights that sum to 1. When shrinking, the filter widens
 * with the step, so that no input goes unseen.
 * @param {number} from @param {number} to
 * @returns {{ first: number, weights: number[] }[]}
 */
export function taps(from, to) {
  const step = from / to;
  const reach = Math.max(1, step);
  return Array.from({ length: to }, (_, i) => {
    const centre = (i + 0.5) * step - 0.5;
    const first = Math.max(0, Math.ceil(centre - reach));
    const last = Math.min(from - 1, Math.floor(centre + reach));
    const raw = Array.from({ length: last - first + 1 }, (__, k) => 1 - Math.abs(first + k - centre) / reach);
    const sum = raw.reduce((total, weight) => total + weight, 0);
    return { first, weights: raw.map((weight) => weight / sum) };
  });
}

/** @param {Image} image @param {number} width @param {number} height @returns {Image} */
export function resize(image, width, height) {
  const across = resizeAcross(image, taps(image.width, width));
  return resizeDown(across, width, taps(image.height, height));
}

/** @param {Image} image @param {ReturnType<typeof taps>} columns */
function resizeAcross({ width, height, data }, columns) {
  const rows = new Float32Array(columns.length * height * 3);
  let to = 0;
  for (let y = 0; y < height; y++) {
    for (const { first, weights } of columns) {
      let red = 0;
      let green = 0;
      let blue = 0;
      let from = (y * width + first) * 3;
      for (let k = 0; k < weights.length; k++, from += 3) {
        red += weights[k] * data[from];
        green += weights[k] * data[from + 1];
        blue += weights[k] * data[from + 2];
      }
      rows[to++] = red;
      rows[to++] = green;
      rows[to++] = blue;
    }
  }
  return rows;
}

/** @param {Float32Array} rows @param {number} width @param {ReturnType<typeof taps>} lines @returns {Image} */
function resizeDown(rows, width, lines) {
  const result = blank(width, lines.length);
  const sums = new Float32Array(width * 3);
  lines.forEach(({ first, weights }, y) => {
    sums.fill(0);
    for (let k = 0; k < weights.length; k++) {
      const weight = weights[k];
      const start = (first + k) * width * 3;
      for (let i = 0; i < sums.length; i++) sums[i] += weight * rows[start + i];
    }
    result.data.set(sums, y * width * 3);
  });
  return result;
}

/**
 * Writes an image as planes of blue, green and red, (value / 255 - mean) / deviation, each plane `stride` wide a row.
 * @param {Image} image @param {Float32Array} into @param {number} stride
 * @param {{ mean: number[], deviation: number[] }} norm  by plane
 */
export function writePlanes({ width, height, data }, into, stride, { mean, deviation }) {
  for (let plane = 0; plane < 3; plane++) {
    const scale = 1 / (255 * deviation[plane]);
    const shift = -mean[plane] / deviation[plane];
    for (let y = 0; y < height; y++) {
      const row = (plane * height + y) * stride;
      for (let x = 0; x < width; x++) into[row + x] = data[(y * width + x) * 3 + 2 - plane] * scale + shift;
    }
  }
}
