// The order in which a person reads boxes: down the page, and across within a row.
import { distance } from './geometry.mjs';

/** @typedef {import('./geometry.mjs').Corners} Corners */

/** How a box leans, from the middle of its left side to the middle of its right. @param {Corners} corners */
function lean([topLeft, topRight, bottomRight, bottomLeft]) {
  const dx = topRight[0] + bottomRight[0] - topLeft[0] - bottomLeft[0];
  const dy = topRight[1] + bottomRight[1] - topLeft[1] - bottomLeft[1];
  return { angle: Math.atan2(dy, dx), length: Math.hypot(dx, dy) };
}

/** The angle that half of all text leans less than. @param {Corners[]} all */
function pageAngle(all) {
  const leans = all.map(lean).sort((a, b) => a.angle - b.angle);
  const half = leans.reduce((sum, { length }) => sum + length, 0) / 2;
  let passed = 0;
  return leans.find(({ length }) => (passed += length) >= half)?.angle ?? 0;
}

/**
 * Rows of boxes, top to bottom, each left to right, on a page that may be tilted. Two boxes share a row when their
 * middles are less than half a height apart.
 * @template {{ corners: Corners }} T
 * @param {T[]} boxes @returns {T[][]}
 */
export function readingOrder(boxes) {
  const angle = pageAngle(boxes.map(({ corners }) => corners));
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
  const placed = boxes.map((box) => {
    const [x, y] = [0, 1].map((axis) => box.corners.reduce((sum, corner) => sum + corner[axis], 0) / 4);
    return { box, across: x * cos + y * sin, down: y * cos - x * sin, height: distance(box.corners[0], box.corners[3]) };
  });
  /** @type {(typeof placed)[]} */
  const rows = [];
  for (const item of placed.sort((a, b) => a.down - b.down)) {
    const last = rows.at(-1)?.at(-1);
    if (last && item.down - last.down < Math.min(item.height, last.height) / 2) rows[rows.length - 1].push(item);
    else rows.push([item]);
  }
  return rows.map((row) => row.sort((a, b) => a.across - b.across).map(({ box }) => box));
}
