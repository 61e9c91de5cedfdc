/** Attention over sizes { b, h, kv, l, s, d, dv, past }; `mask`, `lens` and `past` add operands. */
function attend(name, { b = 2, h = 3, kv = h, l = 4, s = 5, d = 6, dv = d, past }, options = {}, { mask, lens, flat, fill, dtypes, offset } = {}) {
  const dims = flat
    ? [[b, l, h * d], [b, s, kv * d], [b, s, kv * dv]]
    : [[b, h, l, d], [b, kv, s, d], [b, kv, s, dv]];
  const named = {};
  if (mask) named.mask = mask;
  if (past !== undefined) {
    named.pastKey = { dims: [b, kv, past, d] };
    named.pastValue = { dims: [b, kv, past, dv] };
  }
  if (lens) named.nonpadKvSeqlen = { dims: [b], fill: lens, type: lens.type ?? 'int64' };
  const heads = flat ? { qNumHeads: h, kvNumHeads: kv } : {};
  return { op: 'attention', name, options: { ...heads, ...options }, named, dtypes, inputs: dims.map((shape) => ({ dims: shape, fill, offset })), forms: mask?.type === 'bool' ? ['tensors', 'resident'] : undefined };
}

const hidden = [0, -Infinity, 0.5, -1, 0, 2, -Infinity];
const truth = (dims) => ({ dims, fill: [1, 0, 1, 1, 0, 1, 1], type: 'bool' });
const added = (dims) => ({ dims, fill: hidden });

// More than one tile of 64 queries and of 64 keys, in heads of the sizes that kernels are made for and others.
const behind = { fill: 'zeros', at: Object.fromEntries(Array.from({ length: 64 }, (_, key) => [key, -Infinity])) };
const wide = [
  attend('two tiles of keys', { b: 1, h: 2, l: 70, s: 130, d: 32 }),
  attend('heads of 64, three axes, shared heads', { b: 2, h: 4, kv: 2, l: 33, s: 65, d: 64 }, {}, { flat: true }),
  attend('heads of 40 with values of 20, a mask', { b: 1, h: 2, l: 65, s: 66, d: 40, dv: 20 }, { scale: 0.2 }, { mask: { dims: [65, 66], fill: 'normal' } }),
  attend('causal over two tiles', { b: 1, h: 2, l: 100, s: 100, d: 15 }, { causal: true }),
  ...['hide', 'add', 'guarded'].map((masking) =>
    attend(`the first tile hidden, masking: ${masking}`, { b: 1, h: 2, l: 20, s: 100, d: 16 }, { masking }, { mask: { dims: [1, 100], fill: behind } })),
  ...['hide', 'add', 'guarded'].map((masking) =>
    attend(`not finite over two tiles, masking: ${masking}`, { b: 1, h: 1, l: 20, s: 100, d: 16 }, { masking }, { fill: { fill: 'normal', at: { 7: NaN, 100: Infinity, 140: -Infinity } }, mask: { dims: [1, 100], fill: behind } })),
];

const attentions = [
  attend('plain', {}),
  attend('three axes', {}, {}, { flat: true }),
  attend('values of another size', { dv: 3 }),
  attend('values of another size, three axes', { dv: 3 }, {}, { flat: true }),
  attend('shared heads', { h: 6, kv: 2 }),
  attend('shared heads, three axes', { h: 6, kv: 2 }, {}, { flat: true }),
  attend('one head, three axes', { h: 1 }, {}, { flat: true }),
  attend('scale', {}, { scale: 0.05 }),
  attend('softcap', {}, { softcap: 1.5 }, { mask: added([4, 5]) }),
  attend('causal', { l: 5 }, { causal: true }),
  attend('causal, more queries', { l: 7, s: 3 }, { causal: true }),
  attend('causal with a past', { past: 3 }, { causal: true }),
  attend('causal with lengths', { l: 2, s: 6 }, { causal: true }, { lens: [6, 3] }),
  attend('lengths', {}, {}, { lens: [5, 2] }),
  attend('lengths, of which one is 0', {}, {}, { lens: [0, 4] }),
  attend('causal with lengths shorter than the queries', {}, { causal: true }, { lens: [2, 5] }),
  attend('a past', { past: 3 }, { present: true }),
  attend('a past, three axes, shared heads', { h: 4, kv: 2, past: 3, dv: 5 }, { present: true }, { flat: true }),
  attend('present without a past', {}, { present: true }, { flat: true }),
  ...[[5], [4, 5], [1, 4, 5], [3, 4, 5], [2, 1, 4, 5], [2, 3, 1, 5], [2, 3, 4, 5], [4, 3]].flatMap((dims) => [
    attend(`numbers [${dims}] as mask`, {}, {}, { mask: added(dims) }),
    attend(`truth [${dims}] as mask`, {}, {}, { mask: truth(dims) }),
  ]),
  attend('bytes as mask', {}, {}, { mask: { ...truth([4, 5]), type: 'uint8' } }),
  attend('a mask of another type', {}, {}, { mask: { ...added([4, 5]), type: 'float32' } }),
  attend('a causal mask and lengths', { l: 5 }, { causal: true }, { mask: added([5, 5]), lens: [4, 5] }),
  attend('all keys hidden', {}, { scores: 'weights' }, { mask: { dims: [4, 5], fill: 0, type: 'bool' } }),
  attend('all keys of a query hidden', {}, {}, { mask: { dims: [4, 5], fill: { fill: 'zeros', at: { 5: -Infinity, 6: -Infinity, 7: -Infinity, 8: -Infinity, 9: -Infinity } } } }),
  ...['hide', 'add', 'guarded'].flatMap((masking) => [
    attend(`a hidden query, masking: ${masking}`, {}, { masking, scores: 'weights' }, { mask: { dims: [4, 5], fill: { fill: 'zeros', at: { 5: -Infinity, 6: -Infinity, 7: -Infinity, 8: -Infinity, 9: -Infinity, 12: -Infinity } } } }),
    attend(`hidden truths, masking: ${masking}`, { l: 1 }, { masking }, { mask: { dims: [1, 5], fill: 0, type: 'bool' } }),
    attend(`not finite, masking: ${masking}`, {}, { masking }, { fill: { fill: 'normal', at: { 7: NaN, 31: Infinity, 40: -Infinity } }, mask: { dims: [4, 5], fill: { fill: 'zeros', at: { 1: -Infinity, 7: -Infinity } } } }),
  ]),
  ...['products', 'capped', 'masked', 'weights'].map((scores) =>
    attend(`scores: ${scores}`, { past: 2 }, { scores, softcap: 2, causal: true, present: scores === 'masked' }, { mask: added([4, 7]) })),
  ...wide,
  attend('no queries', { l: 0 }),
  attend('no keys', { s: 0 }),
  attend('no batch', { b: 0 }),
  attend('heads of size 0', { d: 0, dv: 3 }),
  attend('more queries than a block', { b: 1, h: 2, l: 70, s: 33, d: 8 }, { causal: true }),
  attend('many keys', { b: 1, h: 1, l: 2, s: 700, d: 4 }, {}, { dtypes: ['float32', 'float16'] }),
  attend('large products', {}, {}, { fill: { fill: 'normal', scale: 30 }, dtypes: ['float32', 'float64'] }),
  attend('view', {}, { causal: true }, { mask: added([4, 5]), offset: 1 }),
];

/** Rotation of [b, h, l, d] or, flat, [b, l, h * d] by rows of positions where `rows` is given. */
function rotate(name, { b = 2, h = 3, l = 4, d = 6, rotated = d, rows }, options = {}, { flat, dtypes } = {}) {
  const table = rows ? [rows, rotated / 2] : [b, l, rotated / 2];
  const named = rows ? { positionIds: { dims: [b, l], fill: [0, rows - 1, 2, 1], type: options.wide ? 'int64' : 'int32' } } : undefined;
  const { wide: _wide, ...others } = options;
  return {
    op: 'rotaryEmbedding', name, dtypes, named,
    inputs: [{ dims: flat ? [b, l, h * d] : [b, h, l, d] }, { dims: table }, { dims: table }],
    options: { ...others, ...(flat ? { numHeads: h } : {}), ...(rotated < d ? { rotaryEmbeddingDim: rotated } : {}) },
  };
}

const rotations = [
  ...[false, true].flatMap((interleaved) => [false, true].flatMap((flat) => {
    const how = `${interleaved ? 'neighbours' : 'halves'}, ${flat ? 'three' : 'four'} axes`;
    return [
      rotate(how, {}, { interleaved }, { flat }),
      rotate(`${how}, positions`, { rows: 5 }, { interleaved }, { flat }),
      rotate(`${how}, a part`, { rotated: 4, rows: 5 }, { interleaved, wide: true }, { flat }),
    ];
  })),
  rotate('long', { b: 1, h: 2, l: 300, d: 64 }, {}, { dtypes: ['float32'] }),
  rotate('no places', { l: 0 }),
  rotate('no batch', { b: 0 }, {}, { flat: true }),
];

export const cases = [...attentions, ...rotations];
export const levels = { attention: 'normalized', rotaryEmbedding: 'accumulate' };
export const kernels = [attentions[0], wide[0], wide[1], attend('scores', {}, { scores: 'weights' }), rotations[0]].map((row) => ({ ...row, forms: ['arrays'] }));
