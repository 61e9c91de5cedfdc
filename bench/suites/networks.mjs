/** @typedef {import('../cases.mjs').Case} Case */
/** @typedef {import('../cases.mjs').Network} Network */

const BAR = /** @type {const} */ ({ of: 'peer', least: 1 });

/** Models by the file that holds them, in the development dependency or in the folder of WARPWRIGHT_BENCH_MODELS. */
const FILES = /** @type {const} */ ({
  'PP-OCRv4 det': { ocr: 'detectionPath' },
  'PP-OCRv4 rec': { ocr: 'recognitionPath' },
  'PP-OCR cls': { file: 'ppocr2-cls.onnx' },
  'MiniLM, 3 layers': { file: 'minilm-l3.onnx' },
});

/** @typedef {keyof typeof FILES} Model */

/**
 * Runs of a model at one shape, which all of its inputs have: arrays on the host in and out.
 * @param {Model} model @param {number[]} dims @param {Partial<Case>} [more]
 * @returns {Case}
 */
const run = (model, dims, more) => ({
  name: `${model} ${dims.join(' x ')}`,
  op: 'network',
  network: { ...FILES[model], part: 'run' },
  inputs: [dims],
  type: 'float32',
  work: {},
  bar: BAR,
  ...more,
});

/** What comes before steady runs. @param {Model} model @param {number[]} dims @returns {Case[]} */
const beginnings = (model, dims) => [
  { ...run(model, dims), name: `${model}: create`, network: { ...FILES[model], part: 'create' }, bar: undefined },
  { ...run(model, dims), name: `${model}: first run at ${dims.join(' x ')}`, network: { ...FILES[model], part: 'first' }, bar: undefined },
];

const SHAPES = /** @type {[Model, number[][]][]} */ ([
  ['PP-OCRv4 det', [[1, 3, 736, 736], [1, 3, 320, 320]]],
  ['PP-OCRv4 rec', [[1, 3, 48, 320], [6, 3, 48, 320]]],
  ['PP-OCR cls', [[1, 3, 48, 192]]],
  ['MiniLM, 3 layers', [[1, 32], [1, 128]]],
]);

const all = SHAPES.flatMap(([model, shapes]) => [...shapes.map((dims) => run(model, dims)), ...beginnings(model, shapes[0])]);

/** @type {import('../cases.mjs').Suite} */
export default {
  name: 'networks',
  title: 'ONNX networks beside onnxruntime-node',
  cases: { cuda: all, cpu: all, smoke: [run('PP-OCRv4 rec', [1, 3, 48, 64], { bar: undefined })] },
};
