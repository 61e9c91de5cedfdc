// npm run fuzz [-- SECONDS]: random models against the reader, the planner and the CPU, from ONNX's own cases as seeds. Needs a
// nightly compiler and cargo-fuzz. What is found lies in fuzz/artifacts; what is worth keeping of the seeds' offspring in
// fuzz/corpus.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root, sh } from './build.mjs';
import { fetchCases, suite } from './cases.mjs';

/** Larger seeds slow the search down. */
const MOST_BYTES = 16 << 10;
const corpus = join(root, 'fuzz/corpus/model');
const dictionary = join(root, 'fuzz/corpus/model.dict');

/** All model files below a folder. @param {string} folder @returns {string[]} */
function models(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return models(path);
    return entry.name === 'model.onnx' ? [path] : [];
  });
}

/** Names in a model: a length and so many letters. @param {Buffer} bytes */
function words(bytes) {
  const found = bytes.toString('latin1').matchAll(/[A-Za-z_][A-Za-z_0-9]{2,40}/g);
  return [...found].filter((match) => match.index > 0 && bytes[match.index - 1] === match[0].length).map(([word]) => word);
}

function seed() {
  mkdirSync(corpus, { recursive: true });
  const counts = new Map();
  for (const path of models(suite)) {
    if (statSync(path).size > MOST_BYTES) continue;
    const bytes = readFileSync(path);
    writeFileSync(join(corpus, createHash('sha1').update(bytes).digest('hex')), bytes);
    for (const word of new Set(words(bytes))) counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  const common = [...counts].filter(([word, count]) => count > 1 && !word.startsWith('test_')).map(([word]) => word);
  writeFileSync(dictionary, common.sort().map((word) => `"${word}"\n`).join(''));
}

const seconds = Number(process.argv[2] ?? 600);
fetchCases();
if (!existsSync(corpus)) seed();
const bounds = ['-timeout=10', '-rss_limit_mb=2048', '-malloc_limit_mb=512', `-max_len=${MOST_BYTES}`, `-max_total_time=${seconds}`];
const flags = ['+nightly', 'fuzz', 'run', '--sanitizer', 'none', '--codegen-units', '16', 'model', corpus];
sh('cargo', [...flags, '--', `-dict=${dictionary}`, ...bounds], { env: { ...process.env, WARPWRIGHT_THREADS: '1' } });
