import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Tensor, conv2d, devices, memoryStats } from '../index.mjs';
import { device, requireDevice } from './helpers/device.mjs';
import { fillArray, generator, hash } from './helpers/random.mjs';
import { differences } from './helpers/tolerance.mjs';

/**
 * Convolutions large enough for the tensor cores of a GPU that has them. Some pixels of each result are compared, all filters
 * of each; src/ops/conv/split/tests.rs holds the same sizes and says that they take that route.
 */
test(`the test device ${device} is there`, requireDevice);

const sizeOf = (dims) => dims.reduce((size, dim) => size * dim, 1);

/** By a fill's name or value by value. */
function filled(dims, fill, seed) {
  const array = new Float32Array(sizeOf(dims));
  if (typeof fill !== 'function') return fillArray(array, fill, seed, 'float32');
  const random = generator(seed);
  for (let i = 0; i < array.length; i++) array[i] = fill(random, i);
  return array;
}

/** Windows over one axis. */
const windows = (size, kernel, { stride, pad, dilation }) => Math.floor((size + 2 * pad - (kernel - 1) * dilation - 1) / stride) + 1;

/** The places of a window's elements in the input, -1 in the padding. */
function placesOf({ x, w, stride, pad, dilation }, image, row, column) {
  const [, channels, height, width] = x;
  const places = [];
  for (let c = 0; c < channels; c++) {
    for (let i = 0; i < w[2]; i++) {
      for (let j = 0; j < w[3]; j++) {
        const h = row * stride - pad + i * dilation;
        const v = column * stride - pad + j * dilation;
        const inside = h >= 0 && h < height && v >= 0 && v < width;
        places.push(inside ? ((image * channels + c) * height + h) * width + v : -1);
      }
    }
  }
  return places;
}

/** Pixels at the ends of images and some between, as [image, row, column]. */
function pixelsOf(images, height, width, seed) {
  const random = generator(seed);
  const some = (count) => Math.floor(random() * count);
  const ends = [0, images - 1].flatMap((n) => [0, height - 1].flatMap((h) => [0, width - 1].map((w) => [n, h, w])));
  return [...ends, ...Array.from({ length: 32 }, () => [some(images), some(height), some(width)])];
}

/** What came at those pixels, what float64 says, and what plain float32 sums say. */
async function compare({ name, x, w, stride = 1, pad = 0, dilation = 1, fillX = 'uniform', fillW = 'uniform', bias = true, activation, precision, more = [] }) {
  const shape = { x, w, stride, pad, dilation };
  const seed = hash(name);
  const [data, weights, biases] = [filled(x, fillX, seed), filled(w, fillW, seed + 1), filled([w[0]], 'uniform', seed + 2)];
  const options = { strides: [stride, stride], pads: [pad, pad, pad, pad], dilations: [dilation, dilation], activation, precision, device };
  const run = () => conv2d(data, weights, { ...options, bias: bias ? biases : undefined, dims: [x, w, bias ? [w[0]] : undefined] });
  const whole = await run();
  const [height, width] = [windows(x[2], w[2], shape), windows(x[3], w[3], shape)];
  const pixels = [...pixelsOf(x[0], height, width, seed), ...more];
  const terms = sizeOf(w.slice(1));
  const got = new Float32Array(pixels.length * w[0]);
  const want = { data: new Float64Array(got.length), bound: new Float64Array(got.length), dims: [pixels.length, w[0]], length: terms };
  const plain = new Float32Array(got.length);
  pixels.forEach(([n, row, column], p) => {
    const places = placesOf(shape, n, row, column);
    for (let f = 0; f < w[0]; f++) {
      const at = p * w[0] + f;
      let [sum, size, single] = [0, 0, 0];
      for (let t = 0; t < terms; t++) {
        const product = (places[t] < 0 ? 0 : data[places[t]]) * weights[f * terms + t];
        sum += product;
        size += Math.abs(product);
        single = Math.fround(single + product);
      }
      if (bias) sum += biases[f];
      plain[at] = bias ? single + biases[f] : single;
      want.data[at] = activation === 'relu' ? (sum <= 0 ? 0 : sum) : sum;
      want.bound[at] = 1.2 * size + Math.abs(sum);
      got[at] = whole[((n * w[0] + f) * height + row) * width + column];
    }
  });
  return { got, want, plain, whole, run };
}

const at = (positions) => ({ fill: 'uniform', at: positions });
const power = (random) => (random() < 0.5 ? -1 : 1) * 10 ** (24 * random() - 12);

const three = { x: [8, 64, 56, 56], w: [64, 64, 3, 3], pad: 1 };
const rows = [
  { name: '3x3 at 56', ...three },
  { name: '3x3 at 28', x: [16, 128, 28, 28], w: [128, 128, 3, 3], pad: 1, activation: 'relu' },
  { name: '3x3 at 14', x: [32, 256, 14, 14], w: [256, 256, 3, 3], pad: 1, bias: false },
  { name: '3x3 at 7', x: [32, 512, 7, 7], w: [512, 512, 3, 3], pad: 1 },
  { name: '1x1', x: [8, 64, 56, 56], w: [256, 64, 1, 1] },
  { name: 'odd sizes', x: [7, 97, 41, 43], w: [131, 97, 3, 3], pad: 1, stride: 2 },
  { name: 'dilation', x: [8, 96, 40, 40], w: [160, 96, 3, 3], pad: 3, dilation: 3 },
  { name: 'three channels', x: [8, 3, 224, 224], w: [64, 3, 7, 7], pad: 3, stride: 2 },
  { name: 'positive numbers', ...three, fillX: 'positive', fillW: 'positive' },
  { name: 'NaN and infinities', ...three, fillX: at({ 5003: NaN, 700_009: Infinity }), fillW: at({ 77: -Infinity }), more: [[0, 33, 19], [0, 34, 20], [3, 28, 0]] },
  { name: 'numbers of any size', x: [4, 64, 28, 28], w: [96, 64, 3, 3], pad: 1, fillX: power, fillW: power },
  { name: 'a large number that meets zeros', x: [16, 64, 28, 28], w: [96, 64, 1, 1], fillX: (random, i) => (Math.floor(i / 784) % 64 === 3 ? 1e30 : 1e-20), fillW: (random, i) => (i % 64 === 3 ? 0 : 1 + random()) },
  { name: 'images of any size', ...three, fillX: (random, i) => (random() - 0.5) * 10 ** (Math.floor(i / 200_704) * 4 - 14), fillW: (random) => random() * 1e-4 },
  { name: 'half of it zeros', ...three, fillX: (random) => Math.max(0, random() - 0.5) },
  { name: 'subnormal numbers', ...three, fillX: { fill: 'uniform', scale: 1e-39 } },
  { name: 'large numbers', ...three, fillX: { fill: 'uniform', scale: 1e37 } },
];

for (const row of rows) {
  test(`convolutions: ${row.name}`, async () => {
    const { got, want } = await compare(row);
    assert.deepEqual(differences('accumulate', got, want, 'float32'), []);
  });
}

for (const precision of ['high', 'medium', 'strict']) {
  test(`convolutions at precision '${precision}' keep its bound`, async () => {
    const { got, want } = await compare({ name: precision, ...three, precision });
    assert.deepEqual(differences(precision === 'strict' ? 'accumulate' : 'eleven', got, want, 'float32'), []);
  });
}

test('errors are no larger than those of a chain', async () => {
  const { got, want, plain } = await compare({ name: 'norms', ...three, fillX: 'normal', fillW: 'normal' });
  const norm = (result) => Math.hypot(...Float64Array.from(result, (value, i) => value - want.data[i]));
  assert.ok(norm(got) <= 1.05 * norm(plain), `${norm(got)} against ${norm(plain)}`);
});

const sameBits = (one, other) => Buffer.compare(Buffer.from(one.buffer), Buffer.from(other.buffer)) === 0;

test('the same convolution gives the same bits', async () => {
  for (const fillX of ['uniform', power]) {
    const { whole, run } = await compare({ name: 'repeats', x: [8, 64, 28, 28], w: [96, 64, 3, 3], pad: 1, fillX, fillW: fillX });
    for (let turn = 0; turn < 4; turn++) assert.ok(sameBits(whole, await run()));
  }
});

/** Whether this device keeps what it makes of weights. */
const keeps = () => devices().find(({ id }) => id === `${device}:0` || id === device)?.computeCapability === '9.0';

for (const fillW of ['normal', at({ 4711: NaN })]) {
  test(`weights${fillW === 'normal' ? '' : ' with NaN'} that meet one input after the other give what new ones give`, async () => {
    const [x, w] = [[8, 64, 28, 28], [128, 64, 3, 3]];
    const data = filled(w, fillW, 6);
    const before = memoryStats(device).prepared;
    const weights = await new Tensor('float32', data, w).to(device);
    for (const [seed, fillX] of ['uniform', 'normal', at({ 77: NaN }), power, 'uniform'].entries()) {
      const input = await new Tensor('float32', filled(x, fillX, seed), x).to(device);
      const fresh = await new Tensor('float32', data, w).to(device);
      const [kept, made] = await Promise.all([conv2d(input, weights, { pads: [1, 1, 1, 1] }), conv2d(input, fresh, { pads: [1, 1, 1, 1] })]);
      assert.ok(sameBits(await kept.getData(), await made.getData()));
      for (const tensor of [input, fresh, kept, made]) tensor.dispose();
    }
    assert.equal(memoryStats(device).prepared > before, keeps());
    weights.dispose();
  });
}
