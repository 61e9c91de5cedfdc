import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** Root of the repository, with a slash at the end. */
export const root = fileURLToPath(new URL('../../', import.meta.url));

/**
 * Runs a program to its end.
 * @param {string} file
 * @param {string[]} args
 * @param {{ env?: Record<string, string | undefined>, cwd?: string, limit?: number, onStdout?: (text: string, child: import('node:child_process').ChildProcess) => void }} [options]
 * @returns {Promise<{ code: number | null, signal: string | null, stdout: string, stderr: string, hung: boolean, seconds: number }>}
 */
export function run(file, args, { env = {}, cwd = root, limit = 60_000, onStdout } = {}) {
  return new Promise((resolve, reject) => {
    const started = performance.now();
    const child = spawn(file, args, { cwd, env: environment(env), stdio: ['ignore', 'pipe', 'pipe'] });
    const output = { stdout: '', stderr: '' };
    let hung = false;
    const timer = setTimeout(() => {
      hung = true;
      child.kill('SIGKILL');
    }, limit);
    child.stdout.setEncoding('utf8').on('data', (text) => {
      output.stdout += text;
      onStdout?.(output.stdout, child);
    });
    child.stderr.setEncoding('utf8').on('data', (text) => { output.stderr += text; });
    child.on('error', (error) => {
      clearTimeout(timer);
      reject(error);
    });
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      resolve({ code, signal, ...output, hung, seconds: (performance.now() - started) / 1000 });
    });
  });
}

/** The parent's environment without what the test runner and the caller's device choice put there. */
function environment(changes) {
  const env = { ...process.env, ...changes };
  delete env.NODE_TEST_CONTEXT;
  delete env.NODE_OPTIONS;
  for (const [name, value] of Object.entries(changes)) if (value === undefined) delete env[name];
  return env;
}

/** Runs a module given as text; `warpwright` in it is imported already. */
export function runModule(text, options = {}) {
  const source = `import * as warpwright from ${JSON.stringify(new URL('../../index.mjs', import.meta.url).href)};\n${text}`;
  return run(process.execPath, [...(options.flags ?? []), '--input-type=module', '-e', source], options);
}

/** The result of a module that ends with `report(value)`; everything else on stdout or stderr is a failure. */
export async function evaluate(text, options = {}) {
  const marker = '@@result ';
  const result = await runModule(`const report = (value) => console.log(${JSON.stringify(marker)} + JSON.stringify(value));\n${text}`, options);
  const lines = result.stdout.split('\n').filter((line) => line !== '');
  if (result.code !== 0 || result.stderr !== '' || lines.length !== 1 || !lines[0].startsWith(marker)) {
    throw new Error(`expected one result and nothing printed, got exit code ${result.code} (${result.signal}), `
      + `stdout ${JSON.stringify(result.stdout)}, stderr ${JSON.stringify(result.stderr)}`);
  }
  return JSON.parse(lines[0].slice(marker.length));
}

/** Throws an error that names the program unless it can be run. */
export async function requireProgram(file, args, purpose) {
  try {
    const result = await run(file, args, { limit: 20_000 });
    if (result.code === 0) return;
    throw new Error(result.stderr);
  } catch (error) {
    throw new Error(`${file} is needed ${purpose} and cannot be run: ${error.message}`);
  }
}
