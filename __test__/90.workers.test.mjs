import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { relu } from '../index.mjs';
import { device, requireDevice } from './helpers/device.mjs';
import { runModule } from './helpers/process.mjs';

test(`the test device ${device} is there`, requireDevice);

const start = (data) => new Worker(new URL('./helpers/worker.mjs', import.meta.url), { workerData: { device, ...data } });

/** Message and exit code of a worker that ends by itself. */
function finished(worker) {
  return new Promise((resolve, reject) => {
    let message;
    worker.on('message', (value) => { message = value; });
    worker.on('error', reject);
    worker.on('exit', (code) => resolve({ message, code }));
  });
}

const works = async () => assert.equal((await relu(Float32Array.of(-1, 4), { device }))[1], 4);

test('8 workers load, run and end, in 3 rounds', async () => {
  for (let round = 0; round < 3; round++) {
    const results = await Promise.all(Array.from({ length: 8 }, () => finished(start({ rounds: 5 }))));
    for (const { message, code } of results) {
      assert.equal(code, 0);
      assert.equal(message, results[0].message);
    }
  }
  await works();
});

test('a worker ended in mid-run, 50 times', async () => {
  for (let i = 0; i < 50; i++) {
    const worker = start({ endless: true });
    await new Promise((resolve, reject) => {
      worker.once('message', resolve);
      worker.once('error', reject);
    });
    await new Promise((resolve) => { setTimeout(resolve, i % 10); });
    await worker.terminate();
  }
  await works();
});

const busy = `
  const device = ${JSON.stringify(device)};
  const a = new warpwright.Tensor('float32', new Float32Array(1024 * 1024).fill(0.5), [1024, 1024]);
  const calls = Array.from({ length: 16 }, () => warpwright.matmul(a, a, { device }));
  for (const call of calls) call.catch(() => {});
  await new Promise((resolve) => { setTimeout(resolve, 30); });
`;

/** A process with 16 calls in flight that ends in some way. */
const endings = {
  'a normal end': { text: 'await Promise.all(calls);', code: 0 },
  'nothing awaited': { text: '', code: 0 },
  'process.exit': { text: 'process.exit(7);', code: 7 },
  'process.exit in a callback': { text: 'calls[0].then(() => process.exit(3)); await new Promise(() => { setTimeout(() => {}, 60000); });', code: 3 },
  'an uncaught exception': { text: "setTimeout(() => { throw new Error('on purpose'); }, 1);", code: 1, stderr: /on purpose/ },
  'a rejection that nobody handles': { text: "Promise.reject(new Error('on purpose'));", code: 1, stderr: /on purpose/ },
  SIGTERM: { text: "console.log('ready'); setInterval(() => {}, 1000);", signal: 'SIGTERM' },
  'a worker left running': {
    text: `const { Worker } = await import('node:worker_threads');
      const worker = new Worker(new URL(${JSON.stringify(new URL('./helpers/worker.mjs', import.meta.url).href)}), { execArgv: [], workerData: { device, endless: true } });
      worker.on('message', () => process.exit(5));
      await new Promise(() => { setTimeout(() => {}, 60000); });`,
    code: 5,
  },
};

for (const [name, ending] of Object.entries(endings)) {
  test(`the process ends: ${name}`, async () => {
    for (let round = 0; round < 5; round++) {
      const result = await runModule(busy + ending.text, {
        limit: 30_000,
        onStdout: (_, child) => ending.signal && child.kill(ending.signal),
      });
      const told = `exit code ${result.code}, signal ${result.signal}, ${result.seconds.toFixed(1)} s, stderr ${result.stderr}`;
      assert.ok(!result.hung, `hung: ${told}`);
      assert.equal(result.signal, ending.signal ?? null, told);
      if (!ending.signal) assert.equal(result.code, ending.code, told);
      if (ending.stderr) assert.match(result.stderr, ending.stderr);
      else assert.equal(result.stderr, '', told);
    }
  });
}

test('idle tensors and pinned memory do not keep the process alive', async () => {
  const result = await runModule(`
    const device = ${JSON.stringify(device)};
    globalThis.kept = [await warpwright.relu(new warpwright.Tensor('float32', new Float32Array(1000), [1000]), { device }), warpwright.allocPinned('float32', 100)];
    console.log('done');`, { limit: 20_000 });
  assert.deepEqual([result.code, result.stdout, result.stderr, result.hung], [0, 'done\n', '', false]);
});

test('two copies of the addon in one process', async () => {
  const result = await runModule(`
    const { Worker } = await import('node:worker_threads');
    const text = "const w = require(" + JSON.stringify(${JSON.stringify(new URL('../index.js', import.meta.url).pathname)}) + "); w.relu(new Float32Array([-1, 2]), { device: 'cpu' }).then((y) => require('node:worker_threads').parentPort.postMessage(y[1]))";
    const answers = await Promise.all([1, 2, 3].map(() => new Promise((resolve, reject) => new Worker(text, { eval: true, execArgv: [] }).on('message', resolve).on('error', reject))));
    console.log(answers.join() + ',' + (await warpwright.relu(new Float32Array([3]), { device: 'cpu' }))[0]);`);
  assert.deepEqual([result.code, result.stdout, result.stderr], [0, '2,2,2,3\n', '']);
});
