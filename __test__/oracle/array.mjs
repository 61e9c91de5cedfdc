/**
 * Row-major arrays for the oracle: { data, dims }, every number a float64.
 * @typedef {{ data: ArrayLike<number>, dims: number[] }} NdArray
 */

/** @param {number[]} dims */
export function sizeOf(dims) {
  return dims.reduce((total, dim) => total * dim, 1);
}

/** @param {number[]} dims */
export function stridesOf(dims) {
  const strides = dims.map(() => 1);
  for (let i = dims.length - 2; i >= 0; i--) strides[i] = strides[i + 1] * dims[i + 1];
  return strides;
}

/** Coordinates of the element at a row-major position. */
export function coordinateOf(position, dims) {
  const coordinate = dims.slice();
  for (let i = dims.length - 1; i >= 0; i--) {
    coordinate[i] = position % dims[i];
    position = Math.floor(position / dims[i]);
  }
  return coordinate;
}

/** The shape that NumPy gives to two shapes side by side. */
export function broadcastDims(a, b) {
  const rank = Math.max(a.length, b.length);
  const out = [];
  for (let i = 0; i < rank; i++) {
    const x = a[i - rank + a.length] ?? 1;
    const y = b[i - rank + b.length] ?? 1;
    if (x !== y && x !== 1 && y !== 1) throw new Error(`[${a}] and [${b}] do not broadcast`);
    out.push(x === 1 ? y : x);
  }
  return out;
}

/** Position in an array of shape `dims` of a coordinate of a broadcast shape. */
export function positionIn(dims, coordinate) {
  const skipped = coordinate.length - dims.length;
  let position = 0;
  for (let i = 0; i < dims.length; i++) {
    position = position * dims[i] + (dims[i] === 1 ? 0 : coordinate[i + skipped]);
  }
  return position;
}

/** Calls `visit` with every coordinate of `dims`, last dimension fastest. */
export function forEachCoordinate(dims, visit) {
  const total = sizeOf(dims);
  for (let i = 0; i < total; i++) visit(coordinateOf(i, dims), i);
}
