import { broadcastDims, coordinateOf, positionIn, sizeOf } from './array.mjs';
import { activate } from './elementwise.mjs';
import { Sum } from './sum.mjs';

/** Reads one matrix of a batch, transposed or not, as a function of row and column. */
function matrix(data, start, rows, columns, transposed) {
  return transposed
    ? (i, j) => data[start + j * rows + i]
    : (i, j) => data[start + i * columns + j];
}

/** Shapes of a matrix product: a vector on the left is a row, on the right a column, and its dimension goes again. */
function layout(a, b, transA, transB) {
  const aDims = a.dims.length === 1 ? [1, a.dims[0]] : a.dims;
  const bDims = b.dims.length === 1 ? [b.dims[0], 1] : b.dims;
  let [m, k] = aDims.slice(-2);
  let [inner, n] = bDims.slice(-2);
  if (transA && a.dims.length > 1) [m, k] = [k, m];
  if (transB && b.dims.length > 1) [inner, n] = [n, inner];
  if (inner !== k) throw new Error(`inner dimensions ${k} and ${inner} differ`);
  const aBatch = aDims.slice(0, -2);
  const bBatch = bDims.slice(0, -2);
  const batch = broadcastDims(aBatch, bBatch);
  const dims = [...batch];
  if (a.dims.length > 1) dims.push(m);
  if (b.dims.length > 1) dims.push(n);
  return { m, n, k, aBatch, bBatch, batch, dims };
}

/** activation(alpha * A B + beta * c + bias) */
export function matmul([a, b], options = {}) {
  const { transA = false, transB = false, alpha = 1, beta = 1, c, bias } = options;
  const { m, n, k, aBatch, bBatch, batch, dims } = layout(a, b, transA, transB);
  const data = new Float64Array(sizeOf(dims));
  const bound = new Float64Array(sizeOf(dims));
  for (let t = 0; t < sizeOf(batch); t++) {
    const place = coordinateOf(t, batch);
    const readA = matrix(a.data, positionIn(aBatch, place) * m * k, m, k, transA && a.dims.length > 1);
    const readB = matrix(b.data, positionIn(bBatch, place) * k * n, k, n, transB && b.dims.length > 1);
    for (let i = 0; i < m; i++) {
      for (let j = 0; j < n; j++) {
        const products = new Sum();
        if (alpha !== 0) for (let p = 0; p < k; p++) products.addProduct(readA(i, p), readB(p, j));
        const total = new Sum();
        if (alpha !== 0) total.addProduct(alpha, products.value);
        if (c && beta !== 0) total.addProduct(beta, c.data[positionIn(c.dims, [...place, i, j])]);
        if (bias) total.add(bias.data[positionIn(bias.dims, [j])]);
        const position = (t * m + i) * n + j;
        data[position] = activate(options, total.value);
        bound[position] = 1.2 * (Math.abs(alpha) * products.size + total.size) + Math.abs(data[position]);
      }
    }
  }
  return { data, bound, dims, length: k };
}
