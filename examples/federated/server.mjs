// Gathers one answer of every client a round and hands the same bytes to all of them.
import { once } from 'node:events';
import { createServer } from 'node:http';

/** A server for a number of clients. */
export class Server {
  #server = createServer((request, response) => this.#take(request, response).catch((error) => response.destroy(error)));
  /** @type {Map<number, { body: Buffer, response: import('node:http').ServerResponse }>} */
  #answers = new Map();
  /** @type {(() => void) | undefined} */
  #complete;
  #count;

  /** @param {number} count clients */
  constructor(count) {
    this.#count = count;
  }

  /** Listens on a free port of this machine; gives the address. */
  async listen() {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return `http://127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (this.#server.address()).port}`;
  }

  /** Waits for an answer of every client. */
  async gather() {
    if (this.#answers.size < this.#count) await new Promise((resolve) => { this.#complete = () => resolve(undefined); });
    return Array.from({ length: this.#count }, (_, client) => /** @type {Buffer} */ (this.#answers.get(client)?.body));
  }

  /** Sends bytes to every client that waits. @param {Uint8Array} bytes */
  send(bytes) {
    const waiting = [...this.#answers.values()];
    this.#answers.clear();
    for (const { response } of waiting) response.end(bytes);
  }

  close() {
    this.#server.close();
  }

  /** @param {import('node:http').IncomingMessage} request @param {import('node:http').ServerResponse} response */
  async #take(request, response) {
    const parts = [];
    for await (const part of request) parts.push(part);
    const client = Number(new URL(request.url ?? '/', 'http://localhost').searchParams.get('client'));
    this.#answers.set(client, { body: Buffer.concat(parts), response });
    if (this.#answers.size === this.#count) this.#complete?.();
  }
}
