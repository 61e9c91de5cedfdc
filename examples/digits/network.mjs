import { Tensor, conv2d, matmul, maxPool2d, softmax } from '../../index.mjs';
import { loadWeights } from './data.mjs';

/** conv, conv, pool, conv, pool, dense, softmax: 20,602 weights, kept on one device. */
export class DigitsNetwork {
  /** @type {Map<string, Tensor>} */
  #weights;

  /** @param {Map<string, Tensor>} weights */
  constructor(weights) {
    this.#weights = weights;
  }

  /**
   * Reads the weights and moves them to the device.
   * @param {import('../../index.mjs').Device} device
   */
  static async load(device) {
    const weights = new Map();
    for (const [name, { data, dims }] of await loadWeights()) {
      weights.set(name, await new Tensor('float32', data, dims).to(device));
    }
    return new DigitsNetwork(weights);
  }

  /** Where the weights are: 'cpu' or 'cuda:N'. */
  get device() {
    return this.#weight('dense.bias').location;
  }

  /**
   * Class probabilities [n, 10] of images [n, 1, 8, 8]; nothing leaves the device in between.
   * @param {Tensor} images
   * @returns {Promise<Tensor>}
   */
  async classify(images) {
    const steps = [
      (/** @type {Tensor} */ x) => this.#convolve(x, 'conv1'),
      (/** @type {Tensor} */ x) => this.#convolve(x, 'conv2'),
      halve,
      (/** @type {Tensor} */ x) => this.#convolve(x, 'conv3'),
      halve,
      (/** @type {Tensor} */ x) => x.reshape([x.dims[0], x.size / x.dims[0]]),
      (/** @type {Tensor} */ x) => matmul(x, this.#weight('dense.weight'), { bias: this.#weight('dense.bias') }),
      (/** @type {Tensor} */ x) => softmax(x, { axis: 1 }),
    ];
    let current = images;
    for (const step of steps) {
      const next = await step(current);
      if (current !== images) current.dispose();
      current = next;
    }
    return current;
  }

  dispose() {
    for (const tensor of this.#weights.values()) tensor.dispose();
  }

  /** @param {Tensor} x @param {string} layer */
  #convolve(x, layer) {
    const bias = this.#weight(`${layer}.bias`);
    return conv2d(x, this.#weight(`${layer}.weight`), { bias, pads: [1, 1, 1, 1], activation: 'relu' });
  }

  /** @param {string} name @returns {Tensor} */
  #weight(name) {
    const tensor = this.#weights.get(name);
    if (!tensor) throw new Error(`weights.json has no tensor ${name}`);
    return tensor;
  }
}

const halve = (/** @type {Tensor} */ x) => maxPool2d(x, { kernel: [2, 2], strides: [2, 2] });
