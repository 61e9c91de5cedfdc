const whole = ['int64', 'int32', 'uint64', 'uint32'];

const runningRows = (op) => {
  const usual = op === 'cumProd' ? [1, -1, 0.5, 2, 1.25, 0.8] : 'normal';
  const row = (name, dims, options = {}, fill = usual, offset = 0) => ({ op, name, inputs: [{ dims, fill, offset }], options });
  return [
    ...[1, 2, 31, 32, 33, 100, 1000].flatMap((n) => [row(`rows of ${n}`, [5, n], { axis: 1 }), row(`columns of ${n}`, [n, 5])]),
    ...[[false, true], [true, false], [true, true]].flatMap(([exclusive, reverse]) => {
      const words = `${exclusive ? 'exclusive' : ''} ${reverse ? 'reverse' : ''}`.trim();
      return [row(`rows, ${words}`, [7, 70], { axis: -1, exclusive, reverse }), row(`columns, ${words}`, [2, 9, 7], { axis: 1, exclusive, reverse })];
    }),
    row('a scalar', []),
    row('no elements', [3, 0], { axis: 1 }),
    row('no rows', [0, 3], { axis: 1 }),
    row('view', [6, 41], { axis: 1 }, usual, 1),
    row('many columns', [3, 700]),
    row('numbers that are not finite', [4, 50], { axis: 1 }, { fill: usual, at: { 20: NaN, 70: Infinity, 120: -Infinity, 130: Infinity } }),
    row('not finite, exclusive', [4, 50], { axis: 1, exclusive: true }, { fill: usual, at: { 20: Infinity } }),
    ...[[5, 40], [40, 5]].flatMap((dims) => [true, false].map((exclusive) => ({
      op, name: `whole numbers, [${dims}]${exclusive ? ', exclusive' : ''}`, inputs: [{ dims, fill: op === 'cumProd' ? [1, 2, 1, 1, 3, 1, 1, 1] : [3, -1, 0, 7, -5] }],
      options: { axis: -1, exclusive }, dtypes: op === 'cumSum' ? whole.slice(0, 2) : whole,
    }))),
  ];
};

const top = (name, dims, options, fill = 'normal', extra = {}) => ({ op: 'topK', name, inputs: [{ dims, fill, offset: extra.offset }], options, dtypes: extra.dtypes });

const topRows = [
  ...[1, 2, 5, 33, 100, 1000, 1024, 1025, 3000].flatMap((n) => [1, 5, n].filter((k) => k <= n && k <= 1100).map((k) => top(`${k} of ${n}`, [3, n], { k }))).filter((row, at, all) => all.findIndex((other) => other.name === row.name) === at),
  ...[true, false].flatMap((largest) => [
    top(`columns, largest ${largest}`, [2, 40, 3], { k: 7, axis: 1, largest }),
    top(`ties, largest ${largest}`, [4, 300], { k: 50, largest }, 'ties'),
    top(`ties of long rows, largest ${largest}`, [2, 2000], { k: 50, largest, sorted: false }, 'ties'),
    top(`not finite, largest ${largest}`, [6, 90], { k: 30, largest }, 'nonFinite'),
    top(`zeros of both signs, largest ${largest}`, [2, 6], { k: 4, largest }, [0, -0]),
    top(`whole numbers, largest ${largest}`, [3, 40], { k: 9, largest }, 'wholes', { dtypes: ['int64', 'int32', 'int16', 'int8'] }),
    top(`numbers without a sign, largest ${largest}`, [3, 40], { k: 9, largest }, [3, 1, 0, 7, 5, 2, 9, 4, 200, 6, 11], { dtypes: ['uint64', 'uint32', 'uint16', 'uint8'] }),
  ]),
  top('all of it', [2, 30], { k: 30 }),
  top('none', [2, 30], { k: 0 }),
  top('of none', [2, 0], { k: 0 }),
  top('no rows', [0, 5], { k: 2 }),
  top('a scalar', [], { k: 1 }),
  top('view', [5, 41], { k: 6 }, 'normal', { offset: 1 }),
];

export const cases = [...runningRows('cumSum'), ...runningRows('cumProd'), ...topRows];
export const levels = { cumSum: 'accumulate', cumProd: 'accumulate', topK: 'exact' };
