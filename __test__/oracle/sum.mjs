/** x * y as a rounded product and its error, exact while nothing overflows. */
export function twoProduct(x, y) {
  const product = x * y;
  const xs = 134217729 * x;
  const xHigh = xs - (xs - x);
  const xLow = x - xHigh;
  const ys = 134217729 * y;
  const yHigh = ys - (ys - y);
  const yLow = y - yHigh;
  return [product, xLow * yLow - (product - xHigh * yHigh - xLow * yHigh - xHigh * yLow)];
}

/**
 * A sum that carries its rounding errors along, so that float64 results can be judged too.
 * Where the plain sum is not finite, that class is the answer.
 */
export class Sum {
  constructor() {
    this.plain = 0;
    this.lost = 0;
    this.size = 0;
  }

  add(value) {
    const next = this.plain + value;
    const part = next - this.plain;
    this.lost += this.plain - (next - part) + (value - part);
    this.plain = next;
    this.size += Math.abs(value);
  }

  addProduct(x, y) {
    const product = x * y;
    const next = this.plain + product;
    const part = next - this.plain;
    const xs = 134217729 * x;
    const xHigh = xs - (xs - x);
    const xLow = x - xHigh;
    const ys = 134217729 * y;
    const yHigh = ys - (ys - y);
    const yLow = y - yHigh;
    this.lost += this.plain - (next - part) + (product - part)
      + (xLow * yLow - (product - xHigh * yHigh - xLow * yHigh - xHigh * yLow));
    this.plain = next;
    this.size += Math.abs(product);
  }

  get value() {
    return Number.isFinite(this.lost) ? this.plain + this.lost : this.plain;
  }
}
