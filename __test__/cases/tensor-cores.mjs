// Products for tensor cores, small enough for the emulator. On a card with one multiprocessor the route pays from a few
// dozen rows and columns on; which of its tiles comes, the sizes decide.
const product = (name, [m, k, n], extra = {}) => {
  const { transA, transB } = extra.options ?? {};
  const batch = extra.batch ?? [];
  return {
    op: 'matmul',
    name: `${name}, ${m} x ${k} x ${n}`,
    inputs: [
      { dims: [...(extra.one === 'a' ? [] : batch), ...(transA ? [k, m] : [m, k])], fill: extra.fillA ?? 'uniform' },
      { dims: [...(extra.one === 'b' ? [] : batch), ...(transB ? [n, k] : [k, n])], fill: extra.fillB ?? 'uniform' },
    ],
    options: extra.options ?? {},
    named: extra.named,
    dtypes: extra.dtypes ?? ['float32'],
    forms: ['arrays'],
    level: extra.level,
  };
};

const end = (m, n) => ({
  options: { alpha: -0.75, beta: 0.5, activation: 'gelu' },
  named: { c: { dims: [m, n], fill: 'uniform' }, bias: { dims: [n], fill: 'uniform' } },
});

/** Three products a term: tiles of 64 x 64, 64 x 128 and 128 x 128, sums of a block of 64 and of parts of one. */
const three = [
  product('one block', [250, 64, 250]),
  product('a tail of one', [255, 65, 127]),
  product('odd sizes', [131, 193, 127]),
  product('wide', [257, 100, 255]),
  product('long sums', [130, 1027, 62], { options: { transA: true } }),
  product('rows of a tile and a half', [190, 400, 127]),
  product('both transposed', [200, 130, 129], { options: { transA: true, transB: true } }),
  product('B transposed', [140, 127, 131], { options: { transB: true } }),
  product('a batch', [129, 70, 65], { batch: [3] }),
  product('a batch by one B', [201, 129, 130], { batch: [2], one: 'b', options: { transA: true } }),
  product('one A by a batch', [190, 100, 127], { batch: [2], one: 'a' }),
  product('all of the end', [201, 131, 130], end(201, 130)),
  product('positive numbers', [129, 200, 131], { fillA: 'positive', fillB: 'positive' }),
];

/** A number at some places, the rest as they are. */
const at = (positions) => ({ fill: 'uniform', at: positions });

/** Numbers from 1e-12 to 1e12 in no order. */
const sizes = (count) => Array.from({ length: count }, (_, i) => (i % 3 ? 1 : -1) * 10 ** ((i * 7919 % 241) / 10 - 12));

/** What the guard finds: NaN, infinities, rows whose numbers differ too much, sums that may overflow. */
const guarded = [
  product('NaN in A', [190, 130, 127], { fillA: at({ 3: NaN, [71 * 130]: NaN }) }),
  product('infinity in B', [190, 130, 127], { fillB: at({ 700: Infinity, 1900: -Infinity }) }),
  product('infinity by zero', [190, 130, 127], { fillA: at({ 5: Infinity }), fillB: at({ [5 * 127 + 1]: 0 }) }),
  product('numbers of any size', [129, 150, 65], { fillA: sizes(997), fillB: sizes(1009) }),
  product('one large number a row', [129, 140, 65], { fillA: at(Object.fromEntries(Array.from({ length: 129 }, (_, i) => [i * 140 + 3, 1e25]))), fillB: at(Object.fromEntries(Array.from({ length: 65 }, (_, j) => [3 * 65 + j, 1e-30]))) }),
  product('sums that may overflow', [190, 130, 127], { fillA: { fill: 'uniform', scale: 1e19 }, fillB: { fill: 'uniform', scale: 1e18 } }),
  product('subnormal numbers', [190, 130, 127], { fillA: { fill: 'uniform', scale: 1e-39 } }),
  product('a batch with NaN', [190, 130, 127], { batch: [2], fillA: at({ [190 * 130 + 9]: NaN }) }),
];

/** One product a term: tiles of 128 x 128 and 128 x 192. */
const one = [
  ...['high', 'medium'].flatMap((precision) => [
    product(precision, [129, 200, 131], { options: { precision }, level: 'eleven' }),
    product(precision, [130, 129, 191], { options: { precision, transA: true }, level: 'eleven' }),
    product(precision, [250, 129, 250], { options: { precision }, level: 'eleven' }),
  ]),
  product('high, a batch', [129, 66, 130], { batch: [2], options: { precision: 'high' }, level: 'eleven' }),
  product('high, sums of one block', [257, 64, 380], { options: { precision: 'high', transB: true }, level: 'eleven' }),
  product('high, NaN', [129, 70, 131], { options: { precision: 'high' }, fillA: at({ 3: NaN }), level: 'eleven' }),
];

/** Tiles of 64 to 256 columns of float16 and bfloat16, in all layouts; tails along each side. */
const halves = [60, 120, 190, 250].flatMap((n) => [{}, { transA: true }, { transB: true }, { transA: true, transB: true }].map((options) =>
  product(`halves ${Object.keys(options).join(' ')}`.trim(), [120, 70, n], { options, dtypes: ['float16', 'bfloat16'] })))
  .concat(product('halves, float32 results', [120, 300, 130], { options: { outputType: 'float32' }, dtypes: ['float16', 'bfloat16'] }));

/** float64: each tile, operand order and end; whole, odd and short sums; operands that tensor maps cannot read in place. */
const transposes = [{}, { transA: true }, { transB: true }, { transA: true, transB: true }];
const double = (name, sizes, extra) => product(name, sizes, { dtypes: ['float64'], ...extra });
const sums = (m, n) => ({ c: { dims: [m, n], fill: 'uniform' }, bias: { dims: [m, 1], fill: 'uniform' } });
export const doubles = [
  ...transposes.flatMap((options) => [
    double(`doubles ${Object.keys(options).join(' ')}`, [250, 34, 252], { options }),
    double(`doubles, odd ${Object.keys(options).join(' ')}`, [255, 135, 253], { options: { ...options, activation: 'relu' }, named: { bias: { dims: [253], fill: 'uniform' } } }),
    double(`doubles, narrow ${Object.keys(options).join(' ')}`, [128, 50, 62], { options: { ...options, alpha: 3 } }),
    double(`doubles, small ${Object.keys(options).join(' ')}`, [62, 18, 60], { options: { ...options, activation: 'tanh' }, named: sums(62, 60) }),
    double(`doubles, smaller ${Object.keys(options).join(' ')}`, [29, 33, 31], { options: { ...options, alpha: -0.75, beta: 0.5 }, named: sums(29, 31) }),
  ]),
  double('doubles, all of the end', [126, 40, 128], end(126, 128)),
  double('doubles, one term', [120, 1, 128]),
  double('doubles, long sums', [33, 1030, 34], { options: { transA: true, alpha: 2 } }),
  double('doubles, a batch', [127, 20, 120], { batch: [3] }),
  double('doubles, a batch by one B', [256, 21, 250], { batch: [2], one: 'b', options: { transA: true } }),
  double('doubles, one A by a batch', [120, 150, 127], { batch: [2], one: 'a', options: { transB: true } }),
];

export const cases = [...three, ...guarded, ...one, ...halves, ...doubles];
