// Reads the text on a page. `node examples/ocr/index.mjs --help` lists the options.
import { mkdir, readFile } from 'node:fs/promises';
import { basename, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { init } from '../../index.mjs';
import { describeDevice } from '../device.mjs';
import { Progress } from '../progress.mjs';
import { characterAccuracy } from './accuracy.mjs';
import { annotate } from './draw.mjs';
import { load, savePng } from './image.mjs';
import { PageReader } from './reader.mjs';

const USAGE = `usage: node examples/ocr/index.mjs [options] [image ...]
  image                           PNG, JPEG or WebP; without one, the page and the photograph that come with the example
  --device cpu|cuda|cuda:N|auto   where to run (default auto)
  --side N                        longer side of what the detection network sees, in pixels, at most (default 1280)
  --passes N                      times to read each image; the first pass also plans and warms up (default 2)
  --out FOLDER                    where annotated images go (default examples/ocr/out)
  --truth FILE                    the true text of the images that are named, to report the accuracy`;

const here = (/** @type {string} */ name) => fileURLToPath(new URL(name, import.meta.url));
/** The example's own images, and the least share of characters that must be right. */
const SAMPLES = [
  { path: here('page.png'), truth: here('page.txt'), least: 0.99 },
  { path: here('photo.jpg'), truth: here('page.txt'), least: 0.97 },
];

/** @typedef {{ path: string, truth?: string, least: number }} Job */
/** @typedef {{ device: import('../../index.mjs').Device, side: number, passes: number, out: string, jobs: Job[] }} Options */

/** @param {string} name @param {string} value @param {number} least */
function wholeNumber(name, value, least) {
  const number = Number(value);
  if (!Number.isInteger(number) || number < least) throw new TypeError(`--${name}: expected a whole number from ${least}, got ${value}`);
  return number;
}

/** @returns {Options | undefined} */
function readOptions() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      device: { type: 'string', default: 'auto' },
      side: { type: 'string', default: '1280' },
      passes: { type: 'string', default: '2' },
      out: { type: 'string', default: here('out') },
      truth: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return undefined;
  return {
    device: /** @type {Options['device']} */ (values.device),
    side: wholeNumber('side', values.side, 32),
    passes: wholeNumber('passes', values.passes, 1),
    out: values.out,
    jobs: positionals.length > 0 ? positionals.map((path) => ({ path, truth: values.truth, least: 0 })) : SAMPLES,
  };
}

/**
 * Decodes an image and reads it `passes` times, each with the same outcome; the last pass and all times are kept.
 * @param {PageReader} reader @param {Job} job @param {number} passes
 */
async function readImage(reader, { path, truth }, passes) {
  const start = performance.now();
  const image = await load(path);
  const decode = performance.now() - start;
  const progress = new Progress(`Reading ${basename(path)}`);
  const results = [];
  for (let pass = 0; pass < passes; pass++) {
    const note = (/** @type {string} */ text) => (passes > 1 ? `pass ${pass + 1}, ${text}` : text);
    results.push(await reader.read(image, (fraction, text) => progress.update((pass + fraction) / passes, note(text))));
  }
  const { rows } = results[results.length - 1];
  const accuracy = truth === undefined ? undefined : characterAccuracy(await readFile(truth, 'utf8'), textOf(rows));
  return { image, rows, accuracy, times: results.map(({ times }) => ({ decode, ...times })) };
}

/** @param {import('./reader.mjs').Line[][]} rows */
const textOf = (rows) => rows.map((row) => row.map(({ text }) => text).join(' ')).join('\n');

/** Every line that was read, numbered as in the annotated image, with its confidence. @param {import('./reader.mjs').Line[][]} rows */
function listing(rows) {
  return rows.flat().map(({ text, confidence }, i) => {
    return `${String(i + 1).padStart(4)}  ${(confidence * 100).toFixed(1).padStart(5)} %  ${text}`;
  });
}

/** Milliseconds of each stage, in the first pass and in the fastest. @param {Record<string, number>[]} times */
function timesTable(times) {
  const total = (/** @type {Record<string, number>} */ pass) => Object.values(pass).reduce((sum, ms) => sum + ms, 0);
  const fastest = times.reduce((best, pass) => (total(pass) < total(best) ? pass : best));
  const row = (/** @type {string} */ name, /** @type {number} */ first, /** @type {number} */ best) =>
    `${name.padEnd(10)}${first.toFixed(1).padStart(10)}${times.length > 1 ? best.toFixed(1).padStart(10) : ''}`;
  return [
    `${'ms'.padEnd(10)}${'first'.padStart(10)}${times.length > 1 ? 'fastest'.padStart(10) : ''}`,
    ...Object.keys(times[0]).map((stage) => row(stage, times[0][stage], fastest[stage])),
    row('total', total(times[0]), total(fastest)),
  ];
}

/** @param {PageReader} reader @param {Job} job @param {Options} options  @returns {Promise<boolean>} whether enough was read right */
async function runJob(reader, job, { passes, out }) {
  const { image, rows, accuracy, times } = await readImage(reader, job, passes);
  const annotated = join(out, `${basename(job.path, extname(job.path))}.annotated.png`);
  await savePng(annotate(image, rows.flat()), annotated);
  console.log(`\n${listing(rows).join('\n')}\n\n${timesTable(times).join('\n')}\n`);
  console.log(`Annotated: ${annotated}`);
  if (!accuracy) return true;
  const { errors, length } = accuracy;
  const isEnough = accuracy.accuracy >= job.least;
  console.log(`Accuracy: ${(accuracy.accuracy * 100).toFixed(2)} % (${errors} of ${length} characters wrong)${isEnough ? '' : `, below ${job.least * 100} %`}\n`);
  return isEnough;
}

/** @param {Options} options */
async function main(options) {
  await init(options.device);
  const start = performance.now();
  const reader = await PageReader.create(options);
  console.log(`Device: ${describeDevice(options.device, reader.device)}; networks ready in ${(performance.now() - start).toFixed(0)} ms`);
  await mkdir(options.out, { recursive: true });
  const failed = [];
  for (const job of options.jobs) if (!(await runJob(reader, job, options))) failed.push(basename(job.path));
  await reader.release();
  if (failed.length > 0) throw new Error(`too many characters wrong: ${failed.join(', ')}`);
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
