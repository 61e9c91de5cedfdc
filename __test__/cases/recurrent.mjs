const gates = { lstm: 4, gru: 3, rnn: 1 };

/** A layer over x of those sizes; `with` names operands given as options. */
export function layer(op, name, [steps, batch, inputs, hidden], options = {}, { with: given = [], lens, fill, dtypes, offset } = {}) {
  const d = options.direction === 'bidirectional' ? 2 : 1;
  const state = options.layout ? [batch, d, hidden] : [d, batch, hidden];
  const dims = {
    bias: [d, 2 * gates[op] * hidden], initialH: state, initialC: state, peepholes: [d, 3 * hidden],
  };
  const named = Object.fromEntries(given.map((operand) => [operand, { dims: dims[operand], offset }]));
  if (lens) named.sequenceLens = { dims: [batch], fill: lens, type: 'int32' };
  const weights = { fill: 'normal', scale: 0.4 };
  return {
    op, name, options, named, dtypes,
    inputs: [
      { dims: options.layout ? [batch, steps, inputs] : [steps, batch, inputs], fill, offset },
      { dims: [d, gates[op] * hidden, inputs], fill: weights, offset },
      { dims: [d, gates[op] * hidden, hidden], fill: weights, offset },
    ],
  };
}

const all = { lstm: ['bias', 'initialH', 'initialC', 'peepholes'], gru: ['bias', 'initialH'], rnn: ['bias', 'initialH'] };
const two = { lstm: ['hardSigmoid', 'softsign', 'relu', 'sigmoid', 'scaledTanh', 'affine'], gru: ['hardSigmoid', 'softplus', 'sigmoid', 'leakyRelu'], rnn: ['elu', 'thresholdedRelu'] };
const alphas = { lstm: [0.3, 0.9, 0.7], gru: [0.3, 0.1], rnn: [0.8, 0.1] };

const common = Object.keys(gates).flatMap((op) => [
  layer(op, 'plain', [3, 2, 4, 5]),
  layer(op, 'everything', [4, 3, 5, 7], {}, { with: all[op] }),
  ...['reverse', 'bidirectional'].flatMap((direction) => [0, 1].map((layout) =>
    layer(op, `${direction}, layout ${layout}`, [4, 3, 5, 6], { direction, layout }, { with: all[op] }))),
  ...['forward', 'reverse', 'bidirectional'].map((direction) =>
    layer(op, `${direction}, lengths`, [5, 4, 3, 6], { direction }, { with: all[op], lens: [5, 0, 2, 4] })),
  layer(op, 'lengths, layout 1', [5, 4, 3, 6], { direction: 'bidirectional', layout: 1 }, { with: all[op], lens: [1, 5, 3, 0] }),
  layer(op, 'one sequence', [6, 1, 9, 33], {}, { with: ['bias'] }),
  layer(op, 'one step', [1, 3, 17, 16], {}, { with: all[op] }),
  layer(op, 'one of each', [1, 1, 1, 1], {}, { with: all[op] }),
  layer(op, 'no steps', [0, 2, 3, 4], {}, { with: all[op] }),
  layer(op, 'no sequences', [3, 0, 3, 4]),
  layer(op, 'no inputs', [2, 2, 0, 4], {}, { with: all[op] }),
  layer(op, 'nothing hidden', [2, 2, 3, 0]),
  layer(op, 'clip', [3, 2, 4, 5], { clip: 0.4 }, { with: all[op] }),
  layer(op, 'functions', [3, 2, 4, 5], { direction: 'bidirectional', activations: two[op], activationAlpha: alphas[op], activationBeta: op === 'rnn' ? [] : [0.4] }, { with: all[op] }),
  layer(op, 'view', [3, 2, 4, 5], {}, { with: all[op], offset: 1 }),
  layer(op, 'one NaN', [3, 2, 4, 5], {}, { fill: { fill: 'normal', at: { 12: NaN } } }),
]);

export const cases = [
  ...common,
  layer('lstm', 'inputForget', [4, 2, 3, 5], { inputForget: true }, { with: all.lstm }),
  layer('lstm', 'many sequences', [2, 300, 3, 30], {}, { with: ['bias'], dtypes: ['float32'] }),
  layer('lstm', 'long', [40, 1, 4, 8], { direction: 'bidirectional' }, { with: ['bias'], dtypes: ['float32', 'float64'] }),
  ...['forward', 'bidirectional'].map((direction) => layer('gru', `linearBeforeReset, ${direction}`, [4, 3, 5, 6], { direction, linearBeforeReset: true }, { with: all.gru, lens: [4, 2, 3] })),
  layer('gru', 'many sequences', [2, 300, 3, 30], {}, { with: ['bias'], dtypes: ['float32'] }),
];
