// Writes __test__/onnx/subset.bin: conformance cases that ride in npm test. Of all that pass on the CPU the smallest for each
// operator, version of the operator set and types of inputs.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pack } from '../__test__/helpers/conformance.mjs';
import { root } from './build.mjs';
import { fetchCases, suite } from './cases.mjs';
import { conformance } from './onnx.mjs';
import { operators, tensor, version } from './proto.mjs';

/** Most bytes of a case. */
const MOST_BYTES = 96 << 10;

/**
 * Tensors of a case in their order; undefined where one is not stored raw.
 * @param {string} folder
 * @param {string} kind
 */
function tensors(folder, kind) {
  const found = [];
  for (let index = 0; ; index++) {
    const path = join(folder, `test_data_set_0/${kind}_${index}.pb`);
    if (!existsSync(path)) return found;
    const read = tensor(readFileSync(path));
    if (!read) return undefined;
    found.push(read);
  }
}

/** The case and what it is an example of; nothing where it is too large. @param {string} name */
function read(name) {
  const folder = join(suite, 'node', name);
  const model = readFileSync(join(folder, 'model.onnx'));
  const [inputs, outputs] = [tensors(folder, 'input'), tensors(folder, 'output')];
  if (!inputs || !outputs) return [];
  const bytes = [...inputs, ...outputs].reduce((sum, one) => sum + one.bytes.length, model.length);
  const types = inputs.map(({ type }) => type).join();
  return bytes > MOST_BYTES ? [] : [{ name, model, inputs, outputs, bytes, keys: operators(model).map((operator) => [operator, version(model), types].join()) }];
}

fetchCases();
const passed = conformance('cpu', ['test_'], 'node').filter(({ outcome }) => outcome === 'PASS');
const cases = passed.flatMap(({ name }) => read(name)).sort((a, b) => a.bytes - b.bytes || (a.name < b.name ? -1 : 1));
const seen = new Set();
const picked = cases.filter(({ keys }) => {
  const fresh = keys.filter((key) => !seen.has(key));
  for (const key of fresh) seen.add(key);
  return fresh.length > 0;
});
picked.sort((a, b) => (a.name < b.name ? -1 : 1));
const bytes = pack(picked);
writeFileSync(join(root, '__test__/onnx/subset.bin'), bytes);
console.log(`${picked.length} of ${passed.length} cases, ${bytes.length} bytes`);
