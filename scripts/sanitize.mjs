// npm run sanitize: our unsafe code under valgrind, AddressSanitizer, ThreadSanitizer and Miri, those that are here.
// Says what ran, what did not and why; fails where one that ran found something.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root, sh } from './build.mjs';
import { buildEmulator, library } from './emulator.mjs';

/** Modules with unsafe code, or with threads that share memory. */
const UNSAFE = ['driver::', 'tensor::', 'runtime::', 'capi::', 'cpu::'];
/** Modules that need neither the system nor threads nor much time, which Miri has none of. */
const PURE = ['shape::', 'error::', 'dtype::', 'tensor::pool', 'ops::geometry', 'ops::attrs', 'ops::tile', 'ops::rows'];
const TARGET = 'x86_64-unknown-linux-gnu';
const PLAIN = ['--locked', '--no-default-features'];
const MINUTES = 15;

/** Leaks on purpose: under a driver that fails, pages that a device may still write to are never given back. */
const KEPT = {
  valgrind: '{\n   pages of a failing driver\n   Memcheck:Leak\n   match-leak-kinds: definite\n   ...\n   fun:*tensor*tests*matrix*\n}\n',
  leaks: 'leak:tensor::tests::matrix\n',
};

/** @param {string} program @param {string[]} args */
const output = (program, args) => {
  const { status, stdout } = spawnSync(program, args, { cwd: root, encoding: 'utf8' });
  return status === 0 ? stdout : undefined;
};

const folder = mkdtempSync(join(tmpdir(), 'warpwright-sanitize-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

/** Writes a file for a tool; gives its path. @param {string} name @param {string} text */
function file(name, text) {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

/** @param {string} program @param {string[]} args @param {Record<string, string>} env */
const limited = (program, args, env = {}) =>
  sh(program, args, { env: { ...process.env, ...env }, timeout: MINUTES * 60_000 });

/** The program that cargo builds. @param {string[]} args */
function built(args) {
  const lines = output('cargo', [...args, ...PLAIN, '--message-format=json'])?.split('\n') ?? [];
  const found = lines.filter((line) => line.includes('"executable":"')).map((line) => JSON.parse(line).executable);
  if (found.length !== 1) throw new Error(`cargo ${args.join(' ')} gave ${found.length} programs`);
  return found[0];
}

function memcheck() {
  const flags = ['-q', '--error-exitcode=9', '--leak-check=full', '--errors-for-leak-kinds=definite', '--show-leak-kinds=definite',
    '--num-callers=40', `--suppressions=${file('valgrind.supp', KEPT.valgrind)}`];
  limited('valgrind', [...flags, built(['test', '--lib', '--no-run']), '--test-threads=1', ...UNSAFE]);
  // The real loader and every call to the driver, against the emulator.
  buildEmulator();
  const report = file('report.jsonl', '');
  const env = { WARPWRIGHT_DEVICE: 'cuda', WARPWRIGHT_DRIVER: library, WARPWRIGHT_EMULATOR_REPORT: report };
  limited('valgrind', [...flags, built(['build', '--example', 'median'])], env);
  const finding = readFileSync(report, 'utf8').split('\n').find((line) => line.includes('"type":"finding"'));
  if (finding) throw new Error(finding);
}

/** The tests with a sanitizer of the nightly compiler. @param {string} name @param {string[]} flags @param {Record<string, string>} env */
function sanitized(name, flags, env) {
  const args = ['+nightly', 'test', '--quiet', '--lib', ...PLAIN, ...flags, '--target', TARGET, '--target-dir', `target/${name}`];
  limited('cargo', [...args, '--', ...UNSAFE], { RUSTFLAGS: `-Zsanitizer=${name}`, ...env });
}

function address() {
  const kept = file('leaks.supp', KEPT.leaks);
  sanitized('address', [], { LSAN_OPTIONS: `suppressions=${kept}:print_suppressions=0` });
  const args = ['+nightly', 'test', '--quiet', '--locked', '--manifest-path', 'emulator/Cargo.toml', '--target', TARGET];
  // Left out: a test whose driver copies, as a card would, from memory that the program has freed.
  const planted = ['--skip', 'memory_that_the_system_has_back_under_a_copy'];
  limited('cargo', [...args, '--target-dir', 'target/address', '--', ...planted], { RUSTFLAGS: '-Zsanitizer=address' });
}

function thread() {
  // The standard library is built with the sanitizer too; without that its locks look like races.
  sanitized('thread', ['-Zbuild-std'], {});
}

function miri() {
  const args = ['+nightly', 'miri', 'test', '--quiet', '--lib', ...PLAIN, '--target-dir', 'target/miri'];
  limited('cargo', [...args, '--', ...PURE], { MIRIFLAGS: '-Zmiri-disable-isolation' });
}

const nightly = output('rustup', ['component', 'list', '--toolchain', 'nightly', '--installed']);
/** @param {string} [component] */
const nightlyLacks = (component = '') => {
  if (nightly === undefined) return 'no nightly toolchain (rustup toolchain install nightly)';
  return nightly.includes(component) ? undefined : `no ${component} (rustup component add --toolchain nightly ${component})`;
};
const elsewhere = process.platform === 'linux' && process.arch === 'x64' ? undefined : 'set up for Linux x64 alone';

/** Name, what it lacks if anything, and the work. @type {[string, string | undefined, () => void][]} */
const TOOLS = [
  ["valgrind's memcheck", output('valgrind', ['--version']) ? undefined : 'valgrind is not installed', memcheck],
  ['AddressSanitizer', elsewhere ?? nightlyLacks(), address],
  ['ThreadSanitizer', elsewhere ?? nightlyLacks('rust-src'), thread],
  ['Miri', nightlyLacks('miri'), miri],
];

const asked = process.argv.slice(2);
const lines = [];
for (const [name, lacks, work] of TOOLS) {
  if (asked.length > 0 && !asked.some((word) => name.toLowerCase().includes(word.toLowerCase()))) continue;
  if (lacks) {
    lines.push(`not run  ${name}: ${lacks}`);
    continue;
  }
  process.stdout.write(`\n== ${name}\n`);
  const start = Date.now();
  try {
    work();
    lines.push(`clean    ${name}, ${Math.round((Date.now() - start) / 1000)} s`);
  } catch (error) {
    process.exitCode = 1;
    lines.push(`FAILED   ${name}: ${/** @type {Error} */ (error).message}`);
  }
}
process.stdout.write(`\n${lines.join('\n')}\n`);
