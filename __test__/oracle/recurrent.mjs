// Recurrent layers in float64, step by step. A number comes with a bound: what of the units in the last place of the
// magnitudes behind it may have reached it.
import { sizeOf } from './array.mjs';

const sigmoid = (x) => 1 / (1 + Math.exp(-x));
const nan = (x, y) => (Number.isNaN(x) ? x : y);

/** name: [function, how many parameters, their defaults, the steepest slope] */
const FUNCTIONS = {
  sigmoid: [sigmoid, [], () => 1],
  tanh: [Math.tanh, [], () => 1],
  relu: [(x) => nan(x, Math.max(x, 0)), [], () => 1],
  affine: [(x, a, b) => a * x + b, [1, 0], (a) => Math.abs(a)],
  leakyRelu: [(x, a) => (x < 0 ? a * x : x), [0.01], () => 1],
  thresholdedRelu: [(x, a) => (x <= a ? 0 : x), [1], () => 1],
  scaledTanh: [(x, a, b) => a * Math.tanh(b * x), [1, 1], (a, b) => Math.abs(a * b)],
  hardSigmoid: [(x, a, b) => nan(x, Math.min(Math.max(a * x + b, 0), 1)), [0.2, 0.5], (a) => Math.abs(a)],
  elu: [(x, a) => (x > 0 ? x : a * Math.expm1(x)), [1], (a) => Math.max(1, Math.abs(a))],
  softsign: [(x) => x / (1 + Math.abs(x)), [], () => 1],
  softplus: [(x) => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x))), [], () => 1],
};

/** The functions of all directions, each from a number and its bound to such a pair. */
function functionsOf(own, directions, { activations, activationAlpha = [], activationBeta = [], clip = Infinity }) {
  const names = activations ?? Array.from({ length: directions }, () => own).flat();
  const rest = [[...activationAlpha], [...activationBeta]];
  return names.map((name) => {
    const [apply, defaults, slope] = FUNCTIONS[name];
    const parameters = defaults.map((value, i) => rest[i].shift() ?? value);
    return ([x, bound]) => {
      const y = apply(nan(x, Math.min(Math.max(x, -clip), clip)), ...parameters);
      return [y, bound * slope(...parameters) + Math.abs(y) + (parameters[1] === undefined ? 0 : Math.abs(parameters[1]))];
    };
  });
}

const plus = ([a, p], [b, q]) => [a + b, p + q];
const times = ([a, p], [b, q]) => [a * b, Math.abs(a) * q + Math.abs(b) * p + Math.abs(a * b)];
const less = ([a, p]) => [1 - a, p];

/** The dot product of a row of weights and pairs. */
const dot = (weights, pairs) => pairs.reduce((sum, pair, i) => plus(sum, times([weights[i], 0], pair)), [0, 0]);
const exact = (values) => Array.from(values, (value) => [value, 0]);

const cells = {
  lstm: {
    gates: 4,
    own: ['sigmoid', 'tanh', 'tanh'],
    step({ j, sum, functions: [f, g, h], peep, options }, state, cell) {
      const look = (k, c) => (peep ? times([peep(k, j), 0], c) : [0, 0]);
      const i = f(plus(sum(0, state), look(0, cell[j])));
      const forget = options.inputForget ? less(i) : f(plus(sum(2, state), look(2, cell[j])));
      const c = plus(times(forget, cell[j]), times(i, g(sum(3, state))));
      const o = f(plus(sum(1, state), look(1, c)));
      return [times(o, h(c)), c];
    },
  },
  gru: {
    gates: 3,
    own: ['sigmoid', 'tanh'],
    step({ j, input, product, sum, sumAt, functions: [f, g], options }, state) {
      const z = f(sum(0, state));
      let inner;
      if (options.linearBeforeReset) inner = plus(input(2), times(f(sum(1, state)), product(2, state)));
      else inner = plus(input(2), product(2, state.map((h, k) => times(f(sumAt(1, k, state)), h))));
      return [plus(times(less(z), g(inner)), times(z, state[j])), [0, 0]];
    },
  },
  rnn: { gates: 1, own: ['tanh'], step: ({ sum, functions: [f] }, state) => [f(sum(0, state)), [0, 0]] },
};

function layer(name, [x, w, r], options) {
  const { gates, own, step } = cells[name];
  const { direction = 'forward', layout = 0, bias, sequenceLens, initialH, initialC, peepholes } = options;
  const directions = direction === 'bidirectional' ? 2 : 1;
  const [steps, batch] = layout ? [x.dims[1], x.dims[0]] : x.dims;
  const inputs = x.dims[2];
  const hidden = r.dims[2];
  const functions = functionsOf(own, directions, options);
  const stateDims = layout ? [batch, directions, hidden] : [directions, batch, hidden];
  const yDims = layout ? [batch, steps, directions, hidden] : [steps, directions, batch, hidden];
  const make = (dims) => ({ data: new Float64Array(sizeOf(dims)), bound: new Float64Array(sizeOf(dims)), dims, length: inputs + hidden });
  const results = [make(yDims), make(stateDims), make(stateDims)].slice(0, name === 'lstm' ? 3 : 2);
  const put = ({ data, bound }, at, pairs) => pairs.forEach(([value, size], j) => { data[at + j] = value; bound[at + j] = size; });
  const stateAt = (d, b) => (layout ? b * directions + d : d * batch + b) * hidden;
  const initial = (from, d, b) => exact(from ? from.data.subarray(stateAt(d, b), stateAt(d, b) + hidden) : new Float64Array(hidden));
  for (let d = 0; d < directions; d++) {
    const row = (matrix, k, j, width) => matrix.data.subarray(((d * gates + k) * hidden + j) * width, ((d * gates + k) * hidden + j + 1) * width);
    const biasOf = (k, j) => [bias ? bias.data[(d * 2 * gates + k) * hidden + j] : 0, 0];
    const peep = peepholes && ((k, j) => peepholes.data[(d * 3 + k) * hidden + j]);
    for (let b = 0; b < batch; b++) {
      let [state, cell] = [initial(initialH, d, b), initial(initialC, d, b)];
      const length = sequenceLens ? sequenceLens.data[b] : steps;
      for (let s = 0; s < length; s++) {
        const t = d === 1 || direction === 'reverse' ? length - 1 - s : s;
        const at = (layout ? b * steps + t : t * batch + b) * inputs;
        const vector = exact(x.data.subarray(at, at + inputs));
        const next = Array.from({ length: hidden }, (_, j) => {
          const inputAt = (k, i) => plus(plus(dot(row(w, k, i, inputs), vector), biasOf(k, i)), [0, Math.abs(biasOf(k, i)[0])]);
          const productAt = (k, i, from) => plus(plus(dot(row(r, k, i, hidden), from), biasOf(gates + k, i)), [0, Math.abs(biasOf(gates + k, i)[0])]);
          const sumAt = (k, i, from) => plus(inputAt(k, i), productAt(k, i, from));
          const input = (k) => inputAt(k, j);
          const product = (k, from) => productAt(k, j, from);
          const sum = (k, from) => sumAt(k, j, from);
          const mine = functions.slice(d * own.length);
          return step({ j, input, product, sum, sumAt, functions: mine, peep, options }, state, cell);
        });
        state = next.map(([h]) => h);
        cell = next.map(([, c]) => c);
        put(results[0], layout ? ((b * steps + t) * directions + d) * hidden : ((t * directions + d) * batch + b) * hidden, state);
      }
      put(results[1], stateAt(d, b), state);
      if (results[2]) put(results[2], stateAt(d, b), cell);
    }
  }
  return results;
}

export const lstm = (inputs, options = {}) => layer('lstm', inputs, options);
export const gru = (inputs, options = {}) => layer('gru', inputs, options);
export const rnn = (inputs, options = {}) => layer('rnn', inputs, options);
