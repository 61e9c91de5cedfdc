import assert from 'node:assert/strict';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { root, run } from './helpers/process.mjs';

const folder = mkdtempSync(join(tmpdir(), 'warpwright-pack-'));
after(() => rmSync(folder, { recursive: true, force: true }));

const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const project = join(folder, 'project');
const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm';
const packed = {};

/** Name of the addon in the root, such as warpwright.linux-x64-gnu.node. */
function addonName() {
  const [name] = readdirSync(root).filter((file) => file.endsWith('.node'));
  assert.ok(name, 'the addon (*.node in the root) is missing; npm run build makes it');
  return name;
}

/** Packs a folder and reports what is inside. */
async function pack(source) {
  const result = await run(npm, ['pack', '--json', '--ignore-scripts', '--pack-destination', folder], { cwd: source, limit: 120_000 });
  assert.equal(result.code, 0, result.stderr);
  const [report] = JSON.parse(result.stdout);
  return { ...report, path: join(folder, report.filename) };
}

/** The platform package as the release makes it: the binary and a manifest of its own. */
function platformFolder(addon) {
  const triple = addon.split('.').at(-2);
  const committed = join(root, 'npm', triple);
  const target = join(folder, 'platform');
  mkdirSync(target);
  if (existsSync(join(committed, 'package.json'))) {
    cpSync(committed, target, { recursive: true });
  } else {
    const [os, cpu, libc] = triple.split('-');
    writeFileSync(join(target, 'package.json'), JSON.stringify({
      name: `${manifest.napi?.packageName ?? manifest.name}-${triple}`, version: manifest.version, os: [os], cpu: [cpu], main: addon, files: [addon],
      license: manifest.license, engines: manifest.engines, ...(libc === 'gnu' ? { libc: ['glibc'] } : {}),
    }));
  }
  cpSync(join(root, addon), join(target, addon));
  return target;
}

before(async () => {
  const addon = addonName();
  packed.platform = await pack(platformFolder(addon));
  packed.main = await pack(root);
  mkdirSync(project);
  writeFileSync(join(project, 'package.json'), '{ "name": "user", "private": true }\n');
  const args = ['install', '--offline', '--ignore-scripts', '--no-audit', '--no-fund', packed.platform.path, packed.main.path];
  const installed = await run(npm, args, { cwd: project, limit: 120_000 });
  assert.equal(installed.code, 0, installed.stderr);
});

test('the packages hold what they should and run nothing at install', () => {
  const names = packed.main.files.map((file) => file.path);
  for (const name of ['package.json', 'README.md', 'index.js', 'index.mjs', 'index.d.ts', 'LICENSE-MIT', 'LICENSE-APACHE']) {
    assert.ok(names.includes(name), `${name} is missing from the package`);
  }
  const foreign = names.filter((name) => /\.(node|rs|cu|ptx)$|^(__test__|bench|target|examples|shared|\.)/.test(name));
  assert.deepEqual(foreign, [], 'files that do not belong into the package');
  assert.ok(packed.main.unpackedSize < 2 ** 20, `the main package unpacks to ${packed.main.unpackedSize} bytes`);
  assert.ok(packed.platform.unpackedSize < 15e6, `the binary package unpacks to ${packed.platform.unpackedSize} bytes`);
  for (const name of ['warpwright', JSON.parse(readFileSync(join(folder, 'platform/package.json'), 'utf8')).name]) {
    const scripts = JSON.parse(readFileSync(join(project, 'node_modules', name, 'package.json'), 'utf8')).scripts ?? {};
    for (const script of ['preinstall', 'install', 'postinstall']) assert.equal(scripts[script], undefined, `${name} ${script}`);
  }
});

test('nothing else was installed', () => {
  const names = readdirSync(join(project, 'node_modules')).filter((name) => !name.startsWith('.') && statSync(join(project, 'node_modules', name)).isDirectory());
  assert.equal(names.length, 2, names.join(', '));
});

const say = "const y = await relu(new Float32Array([-1, 2]), { device: 'cpu' }); console.log(y.join());";

const files = {
  CommonJS: ['user.cjs', `const { relu } = require('warpwright'); (async () => { ${say} })();`],
  'ES module': ['user.mjs', `import { relu } from 'warpwright'; ${say}`],
  'ES module, whole': ['whole.mjs', `import * as warpwright from 'warpwright'; const { relu } = warpwright; ${say}`],
};

for (const [name, [file, text]] of Object.entries(files)) {
  test(`works from ${name}`, async () => {
    writeFileSync(join(project, file), text);
    const result = await run(process.execPath, [file], { cwd: project });
    assert.deepEqual([result.code, result.stdout, result.stderr], [0, '0,2\n', '']);
  });
}

for (const [kind, extension] of [['module', 'mts'], ['commonjs', 'cts']]) {
  test(`works from TypeScript (${kind})`, async () => {
    const compiler = join(root, 'node_modules/typescript/bin/tsc');
    assert.ok(existsSync(compiler), 'typescript is missing; npm install brings it');
    writeFileSync(join(project, `typed.${extension}`), `import { relu } from 'warpwright';
export async function main(): Promise<void> { const y: Float32Array = await relu(new Float32Array([-1, 2]), { device: 'cpu' }); console.log(y.join()); }
void main();\n`);
    const compilerOptions = { strict: true, module: 'nodenext', moduleResolution: 'nodenext', target: 'es2022', lib: ['es2022', 'dom'], types: [], skipLibCheck: true };
    writeFileSync(join(project, `tsconfig.${extension}.json`), JSON.stringify({ compilerOptions, files: [`typed.${extension}`] }));
    const compiled = await run(process.execPath, [compiler, '-p', `tsconfig.${extension}.json`], { cwd: project, limit: 120_000 });
    assert.equal(compiled.code, 0, compiled.stdout);
    const result = await run(process.execPath, [`typed.${extension.replace('t', 'j')}`], { cwd: project });
    assert.deepEqual([result.code, result.stdout, result.stderr], [0, '0,2\n', '']);
  });
}

test('without the platform package the error names it', async () => {
  const bare = join(folder, 'bare');
  mkdirSync(bare);
  writeFileSync(join(bare, 'package.json'), '{ "name": "bare", "private": true }\n');
  const installed = await run(npm, ['install', '--offline', '--ignore-scripts', '--omit=optional', '--no-audit', '--no-fund', packed.main.path], { cwd: bare, limit: 120_000 });
  assert.equal(installed.code, 0, installed.stderr);
  const result = await run(process.execPath, ['-e', "try { require('warpwright'); } catch (e) { console.log(e.message); }"], { cwd: bare });
  assert.equal(result.code, 0, result.stderr);
  assert.match(result.stdout, new RegExp(packed.platform.name));
});
