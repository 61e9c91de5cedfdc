// Whole numbers that stand for floats.
import { coordinateOf, forEachCoordinate, positionIn, sizeOf } from './array.mjs';
import { conv } from './conv.mjs';
import { matmul } from './matmul.mjs';

const ranges = { uint8: [0, 255], int8: [-128, 127], uint16: [0, 65535], int16: [-32768, 32767] };

/** To even at ties. */
function roundEven(x) {
  const floor = Math.floor(x);
  const rest = x - floor;
  return rest > 0.5 || (rest === 0.5 && floor % 2 !== 0) ? floor + 1 : floor;
}

/** Position of the scale of an element. */
function scaleAt(position, x, scale, { axis = 1, blockSize = 0 }) {
  if (blockSize === 0 && sizeOf(scale.dims) === 1 && scale.dims.length < 2) return 0;
  const at = axis < 0 ? axis + x.dims.length : axis;
  const coordinate = coordinateOf(position, x.dims);
  if (blockSize === 0) return coordinate[at];
  coordinate[at] = Math.floor(coordinate[at] / blockSize);
  return positionIn(scale.dims, coordinate);
}

function finish(value, zero, type) {
  const [low, high] = ranges[type];
  return Math.min(Math.max((Number.isNaN(value) ? 0 : roundEven(value)) + zero, low), high);
}

export function quantizeLinear([x, scale], options) {
  const round = x.dtype === 'float64' ? (y) => y : Math.fround;
  const data = Float64Array.from(x.data, (value, i) => {
    const at = scaleAt(i, x, scale, options);
    return finish(round(value / scale.data[at]), options.zeroPoint?.data[at] ?? 0, options.outputType);
  });
  return { data, dims: x.dims };
}

export function requantizeLinear([x, scale], options) {
  const data = Float64Array.from(x.data, (value, i) => {
    const at = scaleAt(i, x, scale, options);
    return finish(Math.fround(Math.fround(value) * scale.data[at]), options.zeroPoint?.data[at] ?? 0, options.outputType);
  });
  return { data, dims: x.dims };
}

export function dequantizeLinear([x, scale], options) {
  const data = Float64Array.from(x.data, (value, i) => {
    const at = scaleAt(i, x, scale, options);
    return (value - (options.zeroPoint?.data[at] ?? 0)) * scale.data[at];
  });
  return { data, dims: x.dims };
}

export function dynamicQuantizeLinear([x]) {
  const f = Math.fround;
  const numbers = [0, ...x.data];
  const [least, most] = [numbers.reduce((a, b) => Math.min(a, b)), numbers.reduce((a, b) => Math.max(a, b))];
  const scale = most === least ? 1 : f(f(most - least) / 255);
  const zero = finish(f(-least / scale), 0, 'uint8');
  const data = Float64Array.from(x.data, (value) => finish(f(value / scale), zero, 'uint8'));
  return [{ data, dims: x.dims }, { data: [scale], dims: [] }, { data: [zero], dims: [] }];
}

/** An operand less its zero points; `place` gives the zero point's position for a coordinate. */
function shifted(x, zero, place) {
  if (!zero) return x;
  const data = new Float64Array(x.data.length);
  forEachCoordinate(x.dims, (coordinate, i) => { data[i] = x.data[i] - zero.data[sizeOf(zero.dims) === 1 ? 0 : place(coordinate)]; });
  return { data, dims: x.dims };
}

export function matMulInteger([a, b], { aZeroPoint, bZeroPoint }) {
  const rows = (c) => (aZeroPoint.dims.length === 1 ? c.at(-2) : positionIn(aZeroPoint.dims, c));
  const columns = (c) => (bZeroPoint.dims.length === 1 ? c.at(-1) : positionIn(bZeroPoint.dims, c));
  const { data, dims } = matmul([shifted(a, aZeroPoint, rows), shifted(b, bZeroPoint, columns)]);
  return { data, dims };
}

export function convInteger([x, w], { xZeroPoint, wZeroPoint, ...options }) {
  const { data, dims } = conv([shifted(x, xZeroPoint, () => 0), shifted(w, wZeroPoint, ([filter]) => filter)], options);
  return { data, dims };
}
