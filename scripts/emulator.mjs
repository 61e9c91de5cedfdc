// Builds the emulator, the stand-in driver that tests run kernels on: target/release/libwarpwright_emulator.so.
import { fileURLToPath } from 'node:url';
import { sh } from './build.mjs';

/** Builds the library. */
export function buildEmulator() {
  sh('cargo', ['build', '--quiet', '--release', '--locked', '--lib', '--manifest-path', 'emulator/Cargo.toml', '--target-dir', 'target']);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) buildEmulator();
