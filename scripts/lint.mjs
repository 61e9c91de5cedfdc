// Formatting and lint of Rust, JavaScript and typings. Warnings fail.
import { sh } from './build.mjs';
import { cargoFlags } from './emulator.mjs';

sh('cargo', ['fmt', '--all', '--check']);
sh('cargo', ['clippy', '--locked', '--all-targets', '--quiet', '--', '-D', 'warnings']);
sh('cargo', ['clippy', '--locked', '--all-targets', '--quiet', '--no-default-features', '--', '-D', 'warnings']);
sh('cargo', ['fmt', '--manifest-path', 'emulator/Cargo.toml', '--check']);
sh('cargo', ['clippy', ...cargoFlags, '--all-targets', '--', '-D', 'warnings']);
sh(process.execPath, ['node_modules/oxlint/bin/oxlint', '--deny-warnings', '--ignore-pattern', 'native.js', '.']);
sh(process.execPath, ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.json']);
