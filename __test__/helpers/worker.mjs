import { parentPort, workerData } from 'node:worker_threads';
import { Tensor, matmul, median, relu } from '../../index.mjs';

/** Runs rounds of small work and reports a checksum, or works until it is ended. */
const { device, rounds, endless } = workerData;

async function round() {
  const n = endless ? 512 : 96;
  const a = new Tensor('float32', Float32Array.from({ length: n * n }, (_, i) => (i % 17) - 8), [n, n]);
  const product = await matmul(a, a, { device });
  const positive = await relu(product, { device });
  const middle = await median(positive, { device });
  const sum = middle.data.reduce((total, value) => total + value, 0);
  for (const tensor of [a, product, positive, middle]) tensor.dispose();
  return sum;
}

let sum = 0;
for (let i = 0; endless || i < rounds; i++) {
  if (endless) {
    if (i === 0) parentPort.postMessage('running');
    await Promise.all([round(), round(), round()]);
  } else {
    sum += await round();
  }
}
parentPort.postMessage(sum);
