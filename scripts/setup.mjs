// Brings a fresh clone to a runnable state: development packages and the built addon. Quick when both are there.
import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { build, root, sh } from './build.mjs';
import { need } from './tools.mjs';

/** Newest modification time below a path. @param {string} path @returns {number} */
function newest(path) {
  const stat = statSync(path);
  if (!stat.isDirectory()) return stat.mtimeMs;
  return Math.max(0, ...readdirSync(path).map((name) => newest(join(path, name))));
}

/** Whether the addon is there and newer than what it is made of. */
function isBuilt() {
  const addon = readdirSync(root).find((name) => name.endsWith('.node'));
  if (!addon) return false;
  const sources = ['src', 'kernels/ptx', 'build.rs', 'Cargo.toml', 'Cargo.lock'].map((name) => join(root, name));
  return statSync(join(root, addon)).mtimeMs >= Math.max(...sources.map(newest));
}

/** Whether every development package is there. */
function isInstalled() {
  const { devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  return Object.keys(devDependencies).every((name) => existsSync(join(root, 'node_modules', name)));
}

need(['cargo']);
if (!isInstalled()) {
  // Not `npm ci`: it refuses a lock file that lacks other systems' optional packages, which npm itself leaves out.
  sh('npm', ['install', '--no-save', '--no-audit', '--no-fund', '--loglevel=error']);
}
if (!isBuilt()) build();
