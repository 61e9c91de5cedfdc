// One client: asks for weights and answers with its gradient until the server has no more. Arguments: URL, number of clients,
// own number, behaviour.
import { loadTraining } from '../digits/data.mjs';
import { gradient } from './network.mjs';

/** What a client sends in place of its gradient. @type {Record<string, (value: number) => number>} */
const BEHAVIOURS = {
  honest: (value) => value,
  flip: (value) => -10 * value,
  large: () => 1e30,
  nan: () => NaN,
};

const [url, count, own, behaviour] = process.argv.slice(2);
const { pixels, labels } = await loadTraining();
const mine = Array.from(labels.keys()).filter((index) => index % Number(count) === Number(own));
const images = {
  pixels: Float32Array.from(mine.flatMap((index) => [...pixels.subarray(index * 64, (index + 1) * 64)])),
  labels: Uint8Array.from(mine, (index) => labels[index]),
};

let answer = new Uint8Array(0);
for (;;) {
  const response = await fetch(`${url}/step?client=${own}`, { method: 'POST', body: answer });
  const bytes = await response.arrayBuffer();
  if (bytes.byteLength === 0) break;
  answer = new Uint8Array(gradient(new Float32Array(bytes), images).map(BEHAVIOURS[behaviour]).buffer);
}
