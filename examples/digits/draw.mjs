const INK = ' .:-=+*#%@';

/**
 * One image as lines of characters, two to a pixel so that it looks square.
 * @param {Float32Array} pixels  height * width values, 0 to 1
 * @param {number} width
 */
function linesOf(pixels, width) {
  const lines = [];
  for (let start = 0; start < pixels.length; start += width) {
    const row = Array.from(pixels.subarray(start, start + width));
    lines.push(row.map((value) => INK[Math.round(value * (INK.length - 1))].repeat(2)).join(''));
  }
  return lines;
}

/**
 * Images side by side, each with its caption below.
 * @param {{ pixels: Float32Array, caption: string }[]} pictures
 * @param {number} width
 */
export function sideBySide(pictures, width) {
  const column = Math.max(width * 2, ...pictures.map(({ caption }) => caption.length)) + 2;
  const drawn = pictures.map(({ pixels, caption }) => [...linesOf(pixels, width), caption]);
  const height = drawn[0].length;
  const rows = Array.from({ length: height }, (_, i) => drawn.map((lines) => lines[i].padEnd(column)).join('').trimEnd());
  return rows.join('\n');
}
