// The image with every box outlined, green where the reading is sure and red where it is not, and numbered as in the list.

/** @typedef {import('./image.mjs').Image} Image */
/** @typedef {import('./geometry.mjs').Point} Point */
/** @typedef {[number, number, number]} Colour */

/** Digits of three by five pixels: a row each three bits, top first. */
const DIGITS = ['75557', '26227', '71747', '71717', '55711', '74717', '74757', '71111', '75757', '75717'];
const [DIGIT_WIDTH, DIGIT_HEIGHT] = [3, 5];
/** Thickness and scale grow with the image, so that a large one is as legible. */
const PIXELS_FOR_ONE = 600;

/** @param {Image} image @param {number} x @param {number} y @param {number} size @param {Colour} colour */
function fillSquare({ width, height, data }, x, y, size, colour) {
  for (let row = Math.max(0, y); row < Math.min(height, y + size); row++) {
    for (let column = Math.max(0, x); column < Math.min(width, x + size); column++) data.set(colour, (row * width + column) * 3);
  }
}

/** @param {Image} image @param {Point} from @param {Point} to @param {number} thickness @param {Colour} colour */
export function drawLine(image, from, to, thickness, colour) {
  const steps = Math.max(1, Math.ceil(Math.max(Math.abs(to[0] - from[0]), Math.abs(to[1] - from[1]))));
  for (let i = 0; i <= steps; i++) {
    const [x, y] = [0, 1].map((axis) => Math.round(from[axis] + ((to[axis] - from[axis]) * i) / steps - (thickness - 1) / 2));
    fillSquare(image, x, y, thickness, colour);
  }
}

/** @param {Image} image @param {number} number @param {Point} right  where the last digit's top right corner goes @param {number} scale @param {Colour} colour */
export function drawNumber(image, number, [right, top], scale, colour) {
  const digits = String(number);
  const left = Math.round(right) - digits.length * (DIGIT_WIDTH + 1) * scale;
  [...digits].forEach((digit, i) => {
    [...DIGITS[Number(digit)]].forEach((bits, row) => {
      for (let column = 0; column < DIGIT_WIDTH; column++) {
        if (((Number(bits) >> (DIGIT_WIDTH - 1 - column)) & 1) === 0) continue;
        const x = left + (i * (DIGIT_WIDTH + 1) + column) * scale;
        fillSquare(image, x, Math.round(top) + row * scale, scale, colour);
      }
    });
  });
}

/** Red at half and below, green at 1. @param {number} confidence @returns {Colour} */
export function colourOf(confidence) {
  const sure = Math.min(1, Math.max(0, confidence * 2 - 1));
  return [Math.round(220 * (1 - sure)), Math.round(40 + 120 * sure), 40];
}

/**
 * @param {Image} image
 * @param {{ corners: import('./geometry.mjs').Corners, confidence: number }[]} boxes  numbered from 1
 * @returns {Image}
 */
export function annotate(image, boxes) {
  const result = { ...image, data: image.data.slice() };
  const scale = Math.max(1, Math.round(Math.max(image.width, image.height) / PIXELS_FOR_ONE));
  boxes.forEach(({ corners, confidence }, i) => {
    const colour = colourOf(confidence);
    corners.forEach((corner, side) => drawLine(result, corner, corners[(side + 1) % 4], scale, colour));
    const [topLeft, , , bottomLeft] = corners;
    const middle = (topLeft[1] + bottomLeft[1] - DIGIT_HEIGHT * scale) / 2;
    drawNumber(result, i + 1, [Math.min(topLeft[0], bottomLeft[0]) - 2 * scale, middle], scale, colour);
  });
  return result;
}
