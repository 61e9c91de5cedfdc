import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';
import { root, run } from './helpers/process.mjs';

const compiler = join(root, 'node_modules/typescript/bin/tsc');

/** Compiles a project; the compiler's words on failure. */
async function compile(project) {
  assert.ok(existsSync(compiler), 'typescript is missing; npm install brings it');
  const result = await run(process.execPath, [compiler, '--pretty', 'false', '-p', project], { limit: 120_000 });
  assert.equal(result.code, 0, result.stdout + result.stderr);
}

test('files of users compile under strict, as ES module and as CommonJS', () => compile('__test__/types'));

test('a file of a user whose library knows Float16Array compiles', () => compile('__test__/types/esnext'));

test('the typings name exactly what the package exports', async () => {
  const names = Object.keys(createRequire(import.meta.url)('../index.js'));
  const folder = join(root, '__test__/types/generated');
  mkdirSync(folder, { recursive: true });
  const rows = names.map((name) => `  ${JSON.stringify(name)}: true,`).join('\n');
  writeFileSync(join(folder, 'names.mts'), `import * as warpwright from 'warpwright';\n`
    + `export const names: Record<Exclude<keyof typeof warpwright, 'default' | 'module.exports'>, true> = {\n${rows}\n};\n`);
  const base = JSON.parse(readFileSync(join(root, '__test__/types/tsconfig.json'), 'utf8'));
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ ...base, files: ['names.mts'] }));
  try {
    await compile('__test__/types/generated');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test('every option of the op table is in the typings, with its sentence', async () => {
  const { default: internal } = await import('../lib/internal.js');
  const typings = ['index.d.ts', 'native.d.ts'].map((name) => join(root, name)).filter(existsSync).map((name) => readFileSync(name, 'utf8')).join('\n');
  for (const op of internal.opTable()) {
    assert.match(typings, new RegExp(`\\b${op.name}\\b`), op.name);
    for (const attribute of op.attributes) assert.match(typings, new RegExp(`\\b${attribute.name}\\??:`), `${op.name}.${attribute.name}`);
  }
});
