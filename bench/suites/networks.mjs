/** @typedef {import('../cases.mjs').Case} Case */
/** @typedef {import('../cases.mjs').Network} Network */
/** @typedef {import('../cases.mjs').Bar} Bar */

/** Models by the file that holds them, in the development dependency or in the folder of WARPWRIGHT_BENCH_MODELS, and the dim in which new shapes differ. */
const MODELS = /** @type {const} */ ({
  'PP-OCRv4 det': { from: { ocr: 'detectionPath' }, grow: { axis: 3, by: 32 } },
  'PP-OCRv4 rec': { from: { ocr: 'recognitionPath' }, grow: { axis: 3, by: 32 } },
  'PP-OCR cls': { from: { file: 'ppocr2-cls.onnx' }, grow: { axis: 0, by: 1 } },
  'MiniLM, 3 layers': { from: { file: 'minilm-l3.onnx' }, grow: { axis: 1, by: 32 } },
  'MiniLM, 6 layers': { from: { file: 'minilm.onnx' }, grow: { axis: 1, by: 32 } },
  'ResNet-50': { from: { file: 'resnet50.onnx' }, grow: { axis: 0, by: 1 } },
  'MobileNetV3': { from: { file: 'mobilenetv3.onnx' }, grow: { axis: 0, by: 1 } },
});

/** @typedef {keyof typeof MODELS} Model */
/** @typedef {Partial<Record<Network['part'], Bar>>} Bars  a part that is not here has none */

/** @param {number} least @returns {Bar} */
const peer = (least) => ({ of: 'peer', least });

const TITLES = { run: '', bound: ', values on the device', create: ': create', first: ': first run, ', new: ': new shapes after ' };

/**
 * A part of a model at one shape, which all of its inputs have.
 * @param {Model} model @param {Network['part']} part @param {number[]} dims @param {Bar} [bar]
 * @returns {Case}
 */
function part(model, part, dims, bar) {
  const { from, grow } = MODELS[model];
  const shape = dims.join(' x ');
  const name = part === 'create' ? `${model}: create` : part === 'run' || part === 'bound' ? `${model} ${shape}${TITLES[part]}` : `${model}${TITLES[part]}${shape}`;
  return { name, op: 'network', network: { ...from, part, grow }, inputs: [dims], type: 'float32', work: {}, bar };
}

/** The first run of all comes first: it meets a process that has run nothing of this model. @param {[Model, number[][]][]} shapes @param {(dims: number[]) => Bars} barsOf @param {boolean} bound */
const casesOf = (shapes, barsOf, bound) =>
  shapes.flatMap(([model, list]) => [
    ...(/** @type {const} */ (['first', 'create', 'new'])).map((what) => part(model, what, list[0], barsOf(list[0])[what])),
    ...list.flatMap((dims) => (/** @type {const} */ (['run', 'bound'])).filter((what) => bound || what === 'run').map((what) => part(model, what, dims, barsOf(dims)[what]))),
  ]);

const CPU = casesOf(
  [
    ['PP-OCRv4 det', [[1, 3, 736, 736], [1, 3, 320, 320]]],
    ['PP-OCRv4 rec', [[1, 3, 48, 320], [6, 3, 48, 320]]],
    ['PP-OCR cls', [[1, 3, 48, 192]]],
    ['MiniLM, 3 layers', [[1, 32], [1, 128]]],
  ],
  () => ({ run: peer(1) }),
  false,
);

/** On a GPU a first run has 50 ms, a single input half of the peer's time, 32 and more 0.7 of it. @param {number[]} dims @returns {Bars} */
function gpuBars([batch]) {
  const run = batch === 1 ? peer(2) : batch >= 32 ? peer(1.43) : undefined;
  return { first: { of: 'clock', most: 50 }, new: { of: 'clock', most: 50 }, create: peer(1), run };
}

const CUDA = casesOf(
  [
    ['PP-OCRv4 det', [[1, 3, 736, 736], [1, 3, 1280, 960]]],
    ['PP-OCRv4 rec', [[1, 3, 48, 320], [6, 3, 48, 320], [32, 3, 48, 640]]],
    ['PP-OCR cls', [[1, 3, 48, 192], [6, 3, 48, 192]]],
    ['MiniLM, 6 layers', [[1, 32], [1, 128], [32, 128], [128, 128]]],
    ['ResNet-50', [[1, 3, 224, 224], [32, 3, 224, 224]]],
    ['MobileNetV3', [[1, 3, 224, 224], [32, 3, 224, 224]]],
  ],
  gpuBars,
  true,
);

/** @type {import('../cases.mjs').Suite} */
export default {
  name: 'networks',
  title: 'ONNX networks beside onnxruntime',
  cases: { cuda: CUDA, cpu: CPU, smoke: (/** @type {const} */ (['first', 'create', 'run', 'bound'])).map((what) => part('PP-OCRv4 rec', what, [1, 3, 48, 64])) },
};
