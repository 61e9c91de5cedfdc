// Builds the emulator, the stand-in driver that tests run kernels on: target/release/libwarpwright_emulator.so. With
// arguments it runs cargo on the emulator: node scripts/emulator.mjs run --release --example kernel -- ...
import { copyFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { root, sh } from './build.mjs';

/** The built library. */
export const library = join(root, 'target/release/libwarpwright_emulator.so');

/** Flags of cargo for the emulator: its own compiler flags, and so a folder of its own for what they make. */
export const cargoFlags = [
  '--config',
  join(root, 'emulator/.cargo/config.toml'),
  '--locked',
  '--quiet',
  '--manifest-path',
  'emulator/Cargo.toml',
  '--target-dir',
  'target/emulator',
];

/** Builds the library. */
export function buildEmulator() {
  sh('cargo', ['build', ...cargoFlags, '--release', '--lib']);
  mkdirSync(join(root, 'target/release'), { recursive: true });
  copyFileSync(join(root, 'target/emulator/release/libwarpwright_emulator.so'), library);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [command, ...rest] = process.argv.slice(2);
  if (command) sh('cargo', [command, ...cargoFlags, ...rest]);
  else buildEmulator();
}
