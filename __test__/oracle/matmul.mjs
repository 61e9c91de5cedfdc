import { broadcastDims, coordinateOf, positionIn, sizeOf } from './array.mjs';
import { activate } from './elementwise.mjs';
import { Sum } from './sum.mjs';

/** Reads one matrix of a batch, transposed or not, as a function of row and column. */
function matrix(data, start, rows, columns, transposed) {
  return transposed
    ? (i, j) => data[start + j * rows + i]
    : (i, j) => data[start + i * columns + j];
}

/** Sizes of a matrix product and of its batch. */
function layout(a, b, transA, transB) {
  const [m, k] = transA ? a.dims.slice(-2).reverse() : a.dims.slice(-2);
  const [inner, n] = transB ? b.dims.slice(-2).reverse() : b.dims.slice(-2);
  if (inner !== k) throw new Error(`inner dimensions ${k} and ${inner} differ`);
  const aBatch = a.dims.slice(0, -2);
  const bBatch = b.dims.slice(0, -2);
  const batch = broadcastDims(aBatch, bBatch);
  return { m, n, k, aBatch, bBatch, batch, dims: [...batch, m, n] };
}

/** activation(alpha * A B + beta * c + bias) */
export function matmul([a, b], options = {}) {
  const { transA = false, transB = false, alpha = 1, beta = 1, c, bias } = options;
  const { m, n, k, aBatch, bBatch, batch, dims } = layout(a, b, transA, transB);
  const data = new Float64Array(sizeOf(dims));
  const bound = new Float64Array(sizeOf(dims));
  for (let t = 0; t < sizeOf(batch); t++) {
    const place = coordinateOf(t, batch);
    const readA = matrix(a.data, positionIn(aBatch, place) * m * k, m, k, transA);
    const readB = matrix(b.data, positionIn(bBatch, place) * k * n, k, n, transB);
    for (let i = 0; i < m; i++) {
      for (let j = 0; j < n; j++) {
        const products = new Sum();
        if (alpha !== 0) for (let p = 0; p < k; p++) products.addProduct(readA(i, p), readB(p, j));
        const total = new Sum();
        if (alpha !== 0) total.addProduct(alpha, products.value);
        if (c && beta !== 0) total.addProduct(beta, c.data[positionIn(c.dims, [...place, i, j])]);
        if (bias) total.add(bias.data[positionIn(bias.dims, [i, j])]);
        const position = (t * m + i) * n + j;
        data[position] = activate(options, total.value);
        bound[position] = 1.2 * (Math.abs(alpha) * products.size + total.size) + Math.abs(data[position]);
      }
    }
  }
  return { data, bound, dims, length: k };
}
