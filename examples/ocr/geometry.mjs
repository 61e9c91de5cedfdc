// Points, hulls and rectangles of any angle. y points down, angles are in radians.

/** @typedef {[number, number]} Point */
/** @typedef {[Point, Point, Point, Point]} Corners  clockwise from the top left */
/** @typedef {{ centre: Point, width: number, height: number, angle: number }} Rectangle  angle: of its width, -pi/4 to pi/4 */

/** Which side of the line from a to b the point c is on; 0 on the line. @param {Point} a @param {Point} b @param {Point} c */
const turn = (a, b, c) => (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);

/** @param {Point[]} sorted @returns {Point[]} */
function chain(sorted) {
  /** @type {Point[]} */
  const hull = [];
  for (const point of sorted) {
    while (hull.length > 1 && turn(hull[hull.length - 2], hull[hull.length - 1], point) <= 0) hull.pop();
    hull.push(point);
  }
  return hull.slice(0, -1);
}

/**
 * The corners of the convex hull, in order (Andrew's monotone chain). One point stays one, a line keeps its two ends.
 * @param {Point[]} points @returns {Point[]}
 */
export function convexHull(points) {
  const sorted = [...points].sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const hull = [...chain(sorted), ...chain(sorted.reverse())];
  return hull.length > 0 ? hull : sorted.slice(0, 1);
}

/**
 * The rectangle around all points, `angle` turned. @param {Point[]} hull @param {number} angle @returns {Rectangle}
 */
function around(hull, angle) {
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
  const u = hull.map(([x, y]) => x * cos + y * sin);
  const v = hull.map(([x, y]) => y * cos - x * sin);
  const [left, right, top, bottom] = [Math.min(...u), Math.max(...u), Math.min(...v), Math.max(...v)];
  const [cu, cv] = [(left + right) / 2, (top + bottom) / 2];
  return { centre: [cu * cos - cv * sin, cu * sin + cv * cos], width: right - left, height: bottom - top, angle };
}

/** An angle of a side, brought to -pi/4 to pi/4 by quarter turns. @param {number} angle */
const upright = (angle) => angle - Math.round(angle / (Math.PI / 2)) * (Math.PI / 2);

/**
 * The rectangle of least area around the points: one of its sides lies on a side of the hull.
 * @param {Point[]} points @returns {Rectangle}
 */
export function smallestRectangle(points) {
  const hull = convexHull(points);
  const angles = hull.map(([x, y], i) => {
    const [nextX, nextY] = hull[(i + 1) % hull.length];
    return upright(Math.atan2(nextY - y, nextX - x));
  });
  const candidates = angles.map((angle) => around(hull, angle));
  return candidates.reduce((best, next) => (next.width * next.height < best.width * best.height - 1e-9 ? next : best));
}

/** Every side moved outwards by `distance`. @param {Rectangle} rectangle @param {number} distance @returns {Rectangle} */
export function grow(rectangle, distance) {
  return { ...rectangle, width: rectangle.width + 2 * distance, height: rectangle.height + 2 * distance };
}

/** @param {Rectangle} rectangle @returns {Corners} */
export function cornersOf({ centre: [x, y], width, height, angle }) {
  const [cos, sin] = [Math.cos(angle) / 2, Math.sin(angle) / 2];
  const at = (/** @type {number} */ i, /** @type {number} */ j) =>
    /** @type {Point} */ ([x + i * width * cos - j * height * sin, y + i * width * sin + j * height * cos]);
  return [at(-1, -1), at(1, -1), at(1, 1), at(-1, 1)];
}

/** @param {Point} a @param {Point} b */
export const distance = (a, b) => Math.hypot(b[0] - a[0], b[1] - a[1]);
