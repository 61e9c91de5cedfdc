// Builds the native addon: warpwright.<platform>.node, native.js and native.d.ts, then what derives from its tables.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('..', import.meta.url));

/**
 * Runs a command in the repository's root with its output shown; throws when it fails.
 * @param {string} command
 * @param {string[]} args
 * @param {import('node:child_process').SpawnSyncOptions} [options]
 */
export function sh(command, args, options = {}) {
  const { status, error } = spawnSync(command, args, { cwd: root, stdio: 'inherit', ...options });
  if (error) throw new Error(`${command} could not be started: ${error.message}`);
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${status}`);
}

/** Builds the addon and regenerates its loader and typings. */
export function build() {
  const cli = 'node_modules/@napi-rs/cli/dist/cli.js';
  const flags = ['--platform', '--release', '--js', 'native.js', '--dts', 'native.d.ts', '--no-dts-header'];
  sh(process.execPath, [cli, 'build', ...flags, '--', '--locked']);
  sh(process.execPath, ['scripts/generate.mjs']);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) build();
