// Builds the emulator, the stand-in driver that tests run kernels on: target/release/libwarpwright_emulator.so.
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { root, sh } from './build.mjs';

/** The built library. */
export const library = join(root, 'target/release/libwarpwright_emulator.so');

/** Builds the library. */
export function buildEmulator() {
  sh('cargo', ['build', '--quiet', '--release', '--locked', '--lib', '--manifest-path', 'emulator/Cargo.toml', '--target-dir', 'target']);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) buildEmulator();
