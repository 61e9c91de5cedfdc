// Classifies handwritten digits that the network has never seen. `node examples/digits --help` lists the options.
import { parseArgs } from 'node:util';
import { Tensor, init } from '../../index.mjs';
import { describeDevice } from '../device.mjs';
import { Progress } from '../progress.mjs';
import { loadHeldBack } from './data.mjs';
import { sideBySide } from './draw.mjs';
import { DigitsNetwork } from './network.mjs';

const USAGE = `usage: node examples/digits/index.mjs [options]
  --device cpu|cuda|cuda:N|auto   where to run (default auto)
  --batch N                       images in one call (default 150)
  --seconds S                     how long to measure the rate (default 2)`;
const LEAST_ACCURACY = 0.97;
const IN_FLIGHT = 4;
const PICTURES = 5;

/** @typedef {import('./data.mjs').Digits} Digits */
/** @typedef {{ device: import('../../index.mjs').Device, batch: number, seconds: number }} Options */

/** @returns {Options | undefined} */
function readOptions() {
  const { values } = parseArgs({
    options: {
      device: { type: 'string', default: 'auto' },
      batch: { type: 'string', default: '150' },
      seconds: { type: 'string', default: '2' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return undefined;
  const [batch, seconds] = [Number(values.batch), Number(values.seconds)];
  if (!Number.isInteger(batch) || batch < 1) throw new TypeError(`--batch: expected a whole number from 1, got ${values.batch}`);
  if (!(seconds > 0 && seconds < Infinity)) throw new TypeError(`--seconds: expected a number above 0, got ${values.seconds}`);
  return { device: /** @type {Options['device']} */ (values.device), batch, seconds };
}

/**
 * Sends one batch to the device and brings back its probabilities, [n, 10].
 * @param {DigitsNetwork} network @param {Digits} digits @param {number} first @param {number} count
 */
async function classifyBatch(network, digits, first, count) {
  const { pixels, height, width } = digits;
  const area = height * width;
  const onHost = new Tensor('float32', pixels.subarray(first * area, (first + count) * area), [count, 1, height, width]);
  const images = await onHost.to(network.device);
  const answer = await network.classify(images);
  const probabilities = await answer.getData();
  images.dispose();
  answer.dispose();
  return /** @type {Float32Array} */ (probabilities);
}

/** @param {Digits} digits @param {number} size @returns {{ first: number, count: number }[]} */
function batchesOf({ count }, size) {
  const starts = Array.from({ length: Math.ceil(count / size) }, (_, i) => i * size);
  return starts.map((first) => ({ first, count: Math.min(size, count - first) }));
}

/**
 * The predicted class and its probability for every held-back image.
 * @param {DigitsNetwork} network @param {Digits} digits @param {Options} options
 */
async function predict(network, digits, { batch }) {
  const progress = new Progress('Classifying');
  const predictions = [];
  for (const { first, count } of batchesOf(digits, batch)) {
    const probabilities = await classifyBatch(network, digits, first, count);
    const classes = probabilities.length / count;
    for (let i = 0; i < count; i++) {
      const row = probabilities.subarray(i * classes, (i + 1) * classes);
      const probability = Math.max(...row);
      predictions.push({ digit: row.indexOf(probability), probability });
    }
    progress.update((first + count) / digits.count, `${first + count} images`);
  }
  return predictions;
}

/**
 * Images a second over many passes, several batches in flight, copies to and from the device included.
 * @param {DigitsNetwork} network @param {Digits} digits @param {Options} options
 */
async function measureRate(network, digits, { batch, seconds }) {
  const progress = new Progress('Measuring  ');
  const batches = batchesOf(digits, batch);
  const start = performance.now();
  let elapsed = 0;
  let images = 0;
  let next = 0;
  const worker = async () => {
    while (elapsed < seconds) {
      const { first, count } = batches[next++ % batches.length];
      await classifyBatch(network, digits, first, count);
      images += count;
      elapsed = (performance.now() - start) / 1000;
      progress.update(elapsed / seconds, `${Math.round(images / elapsed).toLocaleString('en')} images/s`);
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, worker));
  return images / elapsed;
}

/**
 * A few digits with what the network takes them for; its mistakes first.
 * @param {Digits} digits @param {{ digit: number, probability: number }[]} predictions
 */
function drawSome({ pixels, labels, height, width }, predictions) {
  const area = height * width;
  const isWrong = (/** @type {number} */ i) => predictions[i].digit !== labels[i];
  const all = [...predictions.keys()];
  const shown = [...all.filter(isWrong).slice(0, 2), ...all.filter((i) => !isWrong(i))].slice(0, PICTURES);
  const pictures = shown.map((i) => {
    const { digit, probability } = predictions[i];
    const truth = isWrong(i) ? `, is ${labels[i]}` : '';
    return { pixels: pixels.subarray(i * area, (i + 1) * area), caption: `${digit} (${(probability * 100).toFixed(1)} %)${truth}` };
  });
  return sideBySide(pictures, width);
}

/** @param {Options} options */
async function main(options) {
  await init(options.device);
  const digits = await loadHeldBack();
  const network = await DigitsNetwork.load(options.device);
  const { device } = network;
  console.log(`Device: ${describeDevice(options.device, device)}`);

  const predictions = await predict(network, digits, options);
  const rate = await measureRate(network, digits, options);
  network.dispose();

  const right = predictions.filter(({ digit }, i) => digit === digits.labels[i]).length;
  const accuracy = right / digits.count;
  console.log(`\n${drawSome(digits, predictions)}\n`);
  console.log(`Accuracy: ${(accuracy * 100).toFixed(2)} % (${right} of ${digits.count} held-back digits)`);
  console.log(`Rate: ${Math.round(rate).toLocaleString('en')} images/s on ${device}, copies included`);
  if (accuracy < LEAST_ACCURACY) throw new Error(`accuracy is below ${LEAST_ACCURACY * 100} %`);
}

try {
  const options = readOptions();
  if (options) await main(options);
  else console.log(USAGE);
} catch (error) {
  const { code, message } = /** @type {Error & { code?: string }} */ (error);
  console.error(code ? `${code}: ${message}` : message);
  process.exitCode = 1;
}
