// A peer in Python: one child process for the whole run, asked case by case so that both sides meet the same clocks.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const scriptOf = (/** @type {string} */ name) => fileURLToPath(new URL(`./peers/${name}_peer.py`, import.meta.url));

/** The best form, and all that were tried. @typedef {{ ms: number, how: string, forms?: Record<string, number> }} PeerTiming */

export class Peer {
  #child;
  #lines;

  /** What answered: versions and limits that it measured. @type {Record<string, any>} */
  hello = {};

  /** @param {string} python @param {string} device @param {string} name */
  constructor(python, device, name) {
    this.#child = spawn(python, [scriptOf(name), device], {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { ...process.env, PYTHONWARNINGS: 'ignore' },
    });
    this.#child.on('error', () => {});
    this.#child.stdin.on('error', () => {});
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
  }

  /**
   * Starts it; gives the reason as text where it cannot serve.
   * @param {{ python: string, device: string, name: 'torch' | 'onnxruntime' }} options
   * @returns {Promise<{ peer?: Peer, reason?: string }>}
   */
  static async start({ python, device, name }) {
    const peer = new Peer(python, device, name);
    const hello = await peer.#answer();
    if (!hello) return { reason: `${python} did not start` };
    if (hello.error) {
      await peer.stop();
      return { reason: hello.error };
    }
    peer.hello = hello;
    return { peer };
  }

  /** @param {import('./cases.mjs').Case} one @returns {Promise<PeerTiming | undefined>} */
  async time(one) {
    const answer = await this.#request(one);
    return answer.error ? undefined : answer;
  }

  /** What it answers to a request that it must be able to serve. @param {object} request @returns {Promise<any>} */
  async ask(request) {
    const answer = await this.#request(request);
    if (answer.error) throw new Error(`the peer: ${answer.error}`);
    return answer;
  }

  async stop() {
    if (this.#child.exitCode !== null || this.#child.pid === undefined) return;
    this.#child.stdin.end();
    await once(this.#child, 'exit');
  }

  /** @param {object} request @returns {Promise<any>} */
  async #request(request) {
    this.#child.stdin.write(`${JSON.stringify(request)}\n`);
    const answer = await this.#answer();
    if (!answer) throw new Error('the peer ended early');
    return answer;
  }

  /** @returns {Promise<any>} */
  async #answer() {
    const { value, done } = await this.#lines.next();
    return done ? undefined : JSON.parse(value);
  }
}
