const WIDTH = 32;
const REDRAW_MS = 50;
const LINES_WITHOUT_TERMINAL = 4;

/** A bar that redraws itself on a terminal; a plain line at each quarter elsewhere. */
export class Progress {
  #label;
  #stream;
  #drawnAt = -Infinity;
  #linesPrinted = 0;
  #finished = false;

  /** @param {string} label @param {NodeJS.WriteStream} [stream] */
  constructor(label, stream = process.stdout) {
    this.#label = label;
    this.#stream = stream;
  }

  /** @param {number} fraction  0 to 1 @param {string} [note] */
  update(fraction, note = '') {
    const done = Math.min(1, Math.max(0, fraction));
    if (this.#finished) return;
    this.#finished = done === 1;
    if (this.#stream.isTTY) this.#draw(done, note);
    else this.#print(done, note);
  }

  /** @param {number} done @param {string} note */
  #draw(done, note) {
    const now = performance.now();
    if (done < 1 && now - this.#drawnAt < REDRAW_MS) return;
    this.#drawnAt = now;
    const filled = Math.round(done * WIDTH);
    const bar = '█'.repeat(filled) + '░'.repeat(WIDTH - filled);
    this.#stream.write(`\r${this.#label} ${bar} ${percent(done)} ${note}\x1b[K${done < 1 ? '' : '\n'}`);
  }

  /** @param {number} done @param {string} note */
  #print(done, note) {
    const line = Math.floor(done * LINES_WITHOUT_TERMINAL);
    if (line <= this.#linesPrinted) return;
    this.#linesPrinted = line;
    this.#stream.write(`${this.#label} ${percent(done)} ${note}`.trimEnd() + '\n');
  }
}

/** @param {number} fraction */
const percent = (fraction) => `${Math.floor(fraction * 100)} %`.padStart(5);
