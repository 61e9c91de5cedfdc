const row = (name, dims, options, extra = {}) => ({
  op: 'resize', name, options, dtypes: extra.dtypes, level: options.mode && options.mode !== 'nearest' ? undefined : 'exact',
  inputs: [{ dims, fill: extra.fill ?? 'normal', offset: extra.offset }],
});

const modes = ['nearest', 'linear', 'cubic'];
const transforms = ['half_pixel', 'half_pixel_symmetric', 'pytorch_half_pixel', 'align_corners', 'asymmetric', 'tf_crop_and_resize'];
const roundings = ['round_prefer_floor', 'round_prefer_ceil', 'floor', 'ceil'];
const [batch, up, down, mixed] = [[2, 3, 8, 9], [1, 1, 2, 3], [1, 1, 0.6, 0.4], [1, 1, 1.7, 0.3]];

export const cases = [
  ...modes.flatMap((mode) => transforms.flatMap((coordinateTransformationMode) => {
    const roi = coordinateTransformationMode === 'tf_crop_and_resize' ? { roi: [0.3, -0.2, 0.9, 1.4], extrapolationValue: 7 } : {};
    const of = (what, dims, options) => row(`${mode}, ${coordinateTransformationMode}, ${what}`, dims, { mode, coordinateTransformationMode, ...roi, ...options });
    return [
      of('larger', batch, { scales: [2, 3], axes: [2, 3] }),
      of('smaller', batch, { scales: [0.6, 0.4], axes: [2, 3] }),
      of('sizes', batch, { sizes: [5, 13], axes: [2, 3] }),
      of('to one', batch, { sizes: [1, 1], axes: [2, 3] }),
      of('of one', [2, 1, 5], { sizes: [4, 7], axes: [1, 2] }),
    ];
  })),
  row('nearest by whole factors', [2, 3, 6, 7], { nearestMode: 'floor', coordinateTransformationMode: 'asymmetric', sizes: [12, 35], axes: [2, 3] }),
  row('nearest by whole factors of half pixels', [3, 2, 5], { sizes: [9, 6, 5], axes: [0, 1, 2] }),
  ...roundings.flatMap((nearestMode) => ['half_pixel', 'asymmetric', 'align_corners'].flatMap((coordinateTransformationMode) => [
    row(`${nearestMode}, ${coordinateTransformationMode}, larger`, [2, 6, 7], { nearestMode, coordinateTransformationMode, sizes: [12, 17], axes: [1, 2] }),
    row(`${nearestMode}, ${coordinateTransformationMode}, smaller`, [2, 16, 17], { nearestMode, coordinateTransformationMode, sizes: [8, 6], axes: [1, 2] }),
  ])),
  ...['linear', 'cubic'].flatMap((mode) => [
    row(`${mode}, excluding what is outside`, batch, { mode, scales: mixed, excludeOutside: true }),
    row(`${mode}, antialias, larger`, batch, { mode, scales: up, antialias: true }),
    row(`${mode}, antialias, smaller`, batch, { mode, scales: down, antialias: true }),
    row(`${mode}, antialias, much smaller`, [2, 97], { mode, sizes: [2, 5], antialias: true }),
    row(`${mode}, antialias, excluding what is outside`, batch, { mode, scales: down, antialias: true, excludeOutside: true }),
    row(`${mode}, three axes`, [2, 4, 5, 6], { mode, sizes: [7, 3, 9], axes: [-3, -2, -1] }),
    row(`${mode}, rows of vectors`, [3, 5, 8], { mode, sizes: [7], axes: [1] }),
    row(`${mode}, view`, [5, 9], { mode, sizes: [8, 4] }, { offset: 1 }),
    row(`${mode}, special numbers`, [6, 11], { mode, sizes: [6, 22] }, { fill: 'nonFinite' }),
  ]),
  row('another cubic', batch, { mode: 'cubic', cubicCoeffA: -0.5, scales: mixed }),
  row('not larger', batch, { mode: 'linear', sizes: [5, 12], axes: [2, 3], keepAspectRatioPolicy: 'not_larger' }),
  row('not smaller', batch, { mode: 'linear', sizes: [5, 12], axes: [3, 2], keepAspectRatioPolicy: 'not_smaller' }),
  row('the same sizes', batch, { mode: 'cubic', sizes: batch }),
  row('no axes', [3, 4], { sizes: [], axes: [] }),
  row('a scalar', [], { sizes: [] }),
  row('to no elements', [3, 4], { scales: [0.2, 1] }),
  row('of no elements', [0, 4], { scales: [2, 2], mode: 'linear' }),
  row('many elements', [3, 200, 210], { mode: 'linear', scales: [1, 1.5, 2.5] }, { dtypes: ['float32'] }),
  row('far more rows than columns', [65_537, 2], { mode: 'linear', scales: [1, 2] }, { dtypes: ['float32'] }),
];
export const levels = { resize: 'accumulate' };
