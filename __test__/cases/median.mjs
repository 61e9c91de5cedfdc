const evens = ['upper', 'lower', 'mean'];
const policies = ['last', 'omit', 'propagate', 'drop'];

const rows = (n, d, options = {}, fill = 'normal', extra = {}) => ({
  op: 'median', name: `${n} rows of ${d} ${JSON.stringify(options)} of ${typeof fill === 'object' && fill.at ? 'normal with spoilt rows' : JSON.stringify(fill)}${extra.offset ? ` at offset ${extra.offset}` : ''}`, inputs: [{ dims: [n, d], fill, offset: extra.offset }], options, ...extra.row,
});

/** Every network size, and counts about the ends of networks and selection. */
const counts = [...Array.from({ length: 67 }, (_, i) => i + 1), 95, 96, 97, 100, 127, 128, 129, 255, 256, 257, 1000, 1023, 1025, 4097];

const sizes = counts.flatMap((n) => [rows(n, n <= 130 ? 37 : 5), rows(n, 9, {}, 'ties')]);
const evenForms = [2, 4, 6, 10, 16, 32, 50, 64, 66, 100, 128, 256, 1000].flatMap((n) => evens.map((even) => rows(n, 7, { even })));
const widths = [0, 1, 2, 3, 31, 32, 33, 255, 256, 257, 1023, 1025, 70001].map((d) => rows(5, d)).concat([31, 257].map((d) => rows(100, d)));

/** Normal numbers with something that is not finite in every fourth row, but never in all. */
const spoilt = (n, d) => ({
  fill: 'normal', at: Object.fromEntries(Array.from({ length: n >> 2 }, (_, i) => [4 * i * d + ((5 * i) % d), [NaN, Infinity, -Infinity][i % 3]])),
});

const special = [1, 2, 3, 5, 8, 9, 16, 33, 64, 65, 100, 257].flatMap((n) => policies.flatMap((nan) => [
  rows(n, 64, { nan }, nan === 'drop' ? spoilt(n, 64) : 'specials'),
  rows(n, 16, { nan, even: 'lower' }, nan === 'drop' ? spoilt(n, 16) : 'nonFinite'),
]));
const means = [2, 4, 8, 64, 100].flatMap((n) => policies.map((nan) => rows(n, 32, { nan, even: 'mean' }, nan === 'drop' ? spoilt(n, 32) : 'nonFinite')));

const extremes = [
  rows(3, 4, {}, 'all'), rows(4, 6, {}, NaN), rows(4, 6, { nan: 'omit' }, NaN), rows(5, 8, {}, Infinity), rows(6, 8, { even: 'mean' }, -Infinity),
  rows(2, 3, { even: 'mean' }, [1.5e38, 3e38, -3e38]), rows(6, 33, { even: 'mean' }, 'huge'), rows(9, 33, {}, 'huge'), rows(9, 33, {}, 'wide'),
  rows(8, 5, {}, [0, -0]), rows(101, 3, {}, 2.5), rows(64, 40, {}, 'zeros'), rows(9, 16, { nan: 'drop' }, { fill: 'normal', at: { 3: NaN, 40: Infinity } }),
  rows(9, 16, { nan: 'reject' }),
  ...[1, 2, 3].map((offset) => rows(7, 33, {}, 'normal', { offset })),
  rows(33, 65, {}, 'normal', { offset: 1 }),
];

export const cases = [...sizes, ...evenForms, ...widths, ...special, ...means, ...extremes];
