// Federated training of a small network on the digits: eleven client processes, three of them hostile (one turns its gradient
// round, one sends 1e30, one sends NaN), and one server that aggregates by each rule in turn.
// node examples/federated/index.mjs [--rounds 60] [--device cpu]
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { aggregate } from '../../index.mjs';
import { loadHeldBack } from '../digits/data.mjs';
import { SIZE, accuracy, startWeights } from './network.mjs';
import { Server } from './server.mjs';

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '60' }, device: { type: 'string', default: 'auto' } } });
const [rounds, device] = [Number(values.rounds), /** @type {import('../../index.mjs').Device} */ (values.device)];
const CLIENTS = ['honest', 'nan', 'honest', 'honest', 'large', 'honest', 'honest', 'flip', 'honest', 'honest', 'honest'];
const RATE = 1;
const f = 3;

/** @type {import('../../index.mjs').AggregateOptions[]} */
const RULES = [
  { rule: 'mean' },
  { rule: 'median', f },
  { rule: 'trimmedMean', f },
  { rule: 'meamed', f },
  { rule: 'krum', f },
  { rule: 'multiKrum', f },
  { rule: 'geometricMedian', f },
  { rule: 'mean', f, nan: 'drop', pre: 'arc' },
  { rule: 'trimmedMean', f, pre: 'nnm' },
];

const bytesOf = (/** @type {Float32Array} */ array) => new Uint8Array(array.buffer, array.byteOffset, array.byteLength);

/** Trains from the same start by one rule. @param {Server} server @param {import('../../index.mjs').AggregateOptions} options */
async function train(server, options) {
  const weights = startWeights(1);
  for (let round = 0; round < rounds; round++) {
    server.send(bytesOf(weights));
    const rows = (await server.gather()).map((body) => new Float32Array(Uint8Array.from(body).buffer));
    const step = await aggregate(rows, { ...options, device });
    for (let i = 0; i < SIZE; i++) weights[i] -= RATE * step[i];
  }
  return weights;
}

const server = new Server(CLIENTS.length);
const url = await server.listen();
const script = fileURLToPath(new URL('client.mjs', import.meta.url));
const clients = CLIENTS.map((behaviour, own) => fork(script, [url, String(CLIENTS.length), String(own), behaviour]));
for (const client of clients) client.on('exit', (code) => { if (code) throw new Error(`a client ended with ${code}`); });
const images = await loadHeldBack();

console.log(`${CLIENTS.length} clients, ${f} hostile (NaN, 1e30, turned round), ${rounds} rounds, ${images.count} images held back`);
await server.gather();
for (const options of RULES) {
  const share = accuracy(await train(server, options), images);
  console.log(`${[options.pre, options.rule].filter(Boolean).join(', ').padEnd(18)} ${(100 * share).toFixed(1).padStart(5)} %`);
}
const ends = clients.map((client) => once(client, 'exit'));
server.send(new Uint8Array(0));
await Promise.all(ends);
server.close();
