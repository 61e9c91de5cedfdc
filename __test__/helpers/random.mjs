/** Seeded generators for test inputs; the same name always gives the same numbers. */

/** A number from a text, for seeding. */
export function hash(text) {
  let h = 2166136261;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 16777619);
  return h >>> 0;
}

/** Uniform numbers in [0, 1). */
export function generator(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const limits = {
  float32: { max: 3.4028234663852886e38, denormal: 1e-42, log: 38 },
  float64: { max: Number.MAX_VALUE, denormal: 2 ** -1030, log: 307 },
  float16: { max: 65504, denormal: 2 ** -20, log: 6 },
  bfloat16: { max: 255 * 2 ** 120, denormal: 2 ** -130, log: 38 },
  int64: { max: 2 ** 53 },
  uint64: { max: 2 ** 53 },
  int32: { max: 2 ** 31 },
  uint32: { max: 2 ** 32 },
  int16: { max: 2 ** 15 },
  uint16: { max: 2 ** 16 },
};

const specialsOf = ({ max, denormal }) => [
  NaN, Infinity, -Infinity, 0, -0, denormal, -denormal, max, -max, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5,
];

/** name: (random, dtype limits) to one number. */
const fills = {
  normal: (random) => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random()),
  uniform: (random) => 2 * random() - 1,
  positive: (random) => 0.01 + 2 * random(),
  wide: (random, { log }) => (random() < 0.5 ? -1 : 1) * 10 ** ((2 * random() - 1) * (log - 2)),
  moderate: (random) => (random() < 0.5 ? -1 : 1) * 10 ** (6 * random() - 5),
  huge: (random, { max }) => (random() < 0.5 ? -1 : 1) * max * (0.5 + random() / 2),
  integers: (random) => Math.floor(17 * random()) - 8,
  halves: (random) => (Math.floor(41 * random()) - 20) / 2,
  wholes: (random, { max = 256 }) => Math.floor((2 * random() - 1) * max * (random() < 0.5 ? 1 : 2 ** -7)),
  ties: (random) => Math.floor(4 * random()) - 1,
  zeros: () => 0,
  ones: () => 1,
  specials: (random, limit) => {
    const special = random() < 0.4;
    const pick = Math.floor(random() * 16);
    return special ? specialsOf(limit)[pick] : fills.normal(random);
  },
  nonFinite: (random) => {
    const pick = random();
    if (pick < 0.2) return [NaN, Infinity, -Infinity][Math.floor(pick * 15)];
    return fills.normal(random);
  },
  all: (random) => [NaN, Infinity, -Infinity][Math.floor(random() * 3)],
};

/**
 * Fills a typed array as `fill` says: a name above, a list of numbers (repeated), a number,
 * or { fill, at: { position: number }, scale, shift }.
 */
export function fillArray(array, fill, seed, dtype) {
  if (typeof fill === 'number') return array.fill(fill);
  if (Array.isArray(fill)) {
    for (let i = 0; i < array.length; i++) array[i] = fill[i % fill.length];
    return array;
  }
  if (typeof fill === 'object') {
    fillArray(array, fill.fill, seed, dtype);
    for (let i = 0; i < array.length; i++) array[i] = array[i] * (fill.scale ?? 1) + (fill.shift ?? 0);
    for (const [position, value] of Object.entries(fill.at ?? {})) array[Number(position)] = value;
    return array;
  }
  const make = fills[fill];
  if (!make) throw new Error(`no fill is called ${fill}`);
  const random = generator(seed);
  for (let i = 0; i < array.length; i++) array[i] = make(random, limits[dtype] ?? {});
  return array;
}

/** Fills an array of whole numbers with any bits, and with the ends of its range and small numbers between; of bool with what is true or not. */
export function fillBits(array, seed, dtype) {
  const random = generator(seed);
  const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
  for (let i = 0; i < bytes.length; i++) bytes[i] = dtype === 'bool' ? [0, 0, 0, 1, 1, 7][Math.floor(random() * 6)] : Math.floor(random() * 256);
  if (dtype === 'bool') return array;
  const wide = array.BYTES_PER_ELEMENT === 8;
  const least = dtype.startsWith('u') ? 0n : -(1n << BigInt(8 * array.BYTES_PER_ELEMENT - 1));
  const special = [least, least - 1n, least + 1n, 0n, 1n, -1n, 2n, -2n, 3n];
  for (let i = 0; i < array.length; i++) {
    if (random() < 0.5) array[i] = wide ? special[Math.floor(random() * 9)] : Number(special[Math.floor(random() * 9)]);
  }
  return array;
}
