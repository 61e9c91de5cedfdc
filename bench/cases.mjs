// What a benchmark case is. The suites hold nothing but cases; the torch peer reads the same ones as JSON.

/**
 * @typedef {object} Case
 * @property {string} name
 * @property {string} op                            an op of the package, or 'aggregate', 'upload', 'download', 'network'
 * @property {number[][]} inputs                    dims of the required operands
 * @property {string} [text]                        of an expression
 * @property {string[]} [names]                     of its operands, in order
 * @property {'float32' | 'float64' | 'float16' | 'bfloat16' | 'uint8'} type
 * @property {boolean} [list]                      whether the required operands are one list
 * @property {{ operand: number, below: number }} [indices]  the operand that holds random indices, of int64
 * @property {Record<string, unknown>} [options]
 * @property {Record<string, number[]>} [operands]  dims of tensors given as options
 * @property {number} [constant]                    the operand that stays the same between calls, as weights do
 * @property {'pinned' | 'plain'} [memory]          host memory of a copy
 * @property {{ flops?: number, bytes?: number }} work  of one call
 * @property {number} [sampleMs]                    milliseconds of one of the nine samples (default 20): more where a GPU slows down under load
 * @property {Network} [network]
 * @property {Bar} [bar]
 *
 * A model, one of those of the OCR example or a file in the folder of WARPWRIGHT_BENCH_MODELS, and what is timed of it.
 * run: from arrays on the host to arrays on the host; bound: values stay on the device; first: the first run of all in this process;
 * new: a run at a shape not met before, whose dim `grow.axis` grows by `grow.by` each time.
 * @typedef {{ ocr?: string, file?: string, part: 'run' | 'bound' | 'create' | 'first' | 'new', grow?: { axis: number, by: number } }} Network
 *
 * Least speed, as a share of the peer's or of the limit; or the most milliseconds.
 * @typedef {{ of: 'peer' | 'limit', least: number } | { of: 'clock', most: number }} Bar
 *
 * @typedef {object} Suite
 * @property {string} name
 * @property {string} title
 * @property {number} [mean]  least geometric mean of the speeds beside the peer
 * @property {{ cuda: Case[], cpu: Case[], smoke: Case[] }} cases  by what is measured; smoke: tiny, on any device
 */

import aggregation from './suites/aggregation.mjs';
import conv from './suites/conv.mjs';
import copies from './suites/copies.mjs';
import elementwise from './suites/elementwise.mjs';
import fused from './suites/fused.mjs';
import gemm from './suites/gemm.mjs';
import layout from './suites/layout.mjs';
import matmul from './suites/matmul.mjs';
import median from './suites/median.mjs';
import networks from './suites/networks.mjs';
import reduce from './suites/reduce.mjs';

/** @type {Suite[]} */
export const SUITES = [matmul, gemm, conv, elementwise, fused, reduce, layout, median, aggregation, copies, networks];
