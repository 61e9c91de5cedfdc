// The programs that building and testing need, and how each is named when it is missing.
import { spawnSync } from 'node:child_process';

/** @type {Record<string, { args: string[], what: string }>} */
const TOOLS = {
  cargo: { args: ['--version'], what: 'a Rust toolchain (rustup.rs)' },
  'cargo fmt': { args: ['fmt', '--version'], what: 'rustfmt (rustup component add rustfmt)' },
  'cargo clippy': { args: ['clippy', '--version'], what: 'clippy (rustup component add clippy)' },
  cc: { args: ['--version'], what: 'a C compiler' },
  python3: { args: ['--version'], what: 'Python 3' },
  pip: { args: ['-m', 'pip', '--version'], what: 'pip for Python 3' },
  venv: { args: ['-m', 'venv', '--help'], what: 'the venv module of Python 3' },
};

const PROGRAM = /** @type {Record<string, string>} */ ({ pip: 'python3', venv: 'python3' });

/**
 * Throws naming every missing program.
 * @param {string[]} names
 */
export function need(names) {
  const missing = names.filter((name) => {
    const program = PROGRAM[name] ?? name.split(' ')[0];
    return spawnSync(program, TOOLS[name].args, { stdio: 'ignore' }).status !== 0;
  });
  if (missing.length > 0) throw new Error(`missing: ${missing.map((name) => TOOLS[name].what).join('; ')}`);
}
