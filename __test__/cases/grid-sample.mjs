/** Places inside and outside, ties between elements among them. */
const places = [-1, -0.75, -0.5, -0.3, 0, 0.25, 0.6, 1, -1.2, 1.3, 2.5, -3.7];

const row = (name, x, grid, options, fill = 'normal', offset = 0) => ({
  op: 'gridSample', name, options, inputs: [{ dims: x, fill, offset }, { dims: grid, fill: places, offset }],
});

const modes = ['linear', 'nearest', 'cubic'].flatMap((mode) => ['zeros', 'border', 'reflection'].flatMap((paddingMode) => [false, true].flatMap((alignCorners) => {
  const options = { mode, paddingMode, alignCorners };
  const words = `${mode}, ${paddingMode}${alignCorners ? ', corners' : ''}`;
  return [
    row(`planes, ${words}`, [2, 3, 5, 7], [2, 5, 11, 2], options),
    row(`volumes, ${words}`, [2, 2, 3, 4, 5], [2, 2, 3, 5, 3], options),
    row(`one element, ${words}`, [1, 1, 1, 1], [1, 3, 4, 2], options),
  ];
})));

export const cases = [
  ...modes,
  row('by default, view', [1, 2, 4, 4], [1, 7, 5, 2], {}, 'normal', 1),
  row('no places', [1, 2, 4, 4], [1, 0, 5, 2], {}),
  row('no images', [0, 2, 4, 4], [0, 3, 5, 2], {}),
  { ...row('places that are not finite', [1, 1, 4, 4], [1, 2, 3, 2], { paddingMode: 'border' }), inputs: [{ dims: [1, 1, 4, 4] }, { dims: [1, 2, 3, 2], fill: [NaN, 0.2, Infinity, -Infinity, 0.1, NaN] }] },
];
