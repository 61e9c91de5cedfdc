const floats = ['float32', 'float64', 'float16', 'bfloat16'];
const wholes = ['int64', 'int32', 'int16', 'int8', 'uint64', 'uint32', 'uint16', 'uint8'];
export const types = [...floats, ...wholes, 'bool'];

const row = (to, name, fill, dims, dtypes, offset = 0) => ({ op: 'cast', name: `to ${to}, ${name}`, inputs: [{ dims, fill, offset }], options: { to }, dtypes });

/** Between floats by vectors and without, and everything else one by one. */
export const cases = types.flatMap((to) => [
  row(to, 'special numbers', 'specials', [2051], floats),
  row(to, 'wide numbers', 'wide', [700], floats),
  row(to, 'moderate numbers', 'moderate', [40, 33], floats),
  row(to, 'halves', { fill: 'halves', scale: 14 }, [300], floats),
  row(to, 'view at an odd offset', 'normal', [1001], floats, 1),
  row(to, 'no elements', 'normal', [3, 0], types),
  row(to, 'one', 1, [], types),
  row(to, 'whole numbers', 'wholes', [1500], [...wholes, 'bool']),
]);
