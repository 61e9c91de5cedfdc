import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { requireProgram, root, run } from './helpers/process.mjs';

const folder = mkdtempSync(join(tmpdir(), 'warpwright-capi-'));
after(() => rmSync(folder, { recursive: true, force: true }));

const plain = process.env.WARPWRIGHT_CAPI_LIBRARY ?? join(root, 'target/capi/release/libwarpwright.so');
const addon = process.env.WARPWRIGHT_ADDON ?? readdirSync(root).filter((name) => name.endsWith('.node')).map((name) => join(root, name))[0];
const python = process.env.PYTHON ?? 'python3';
const compiler = process.env.CC ?? 'cc';
const env = { WARPWRIGHT_DEVICE: process.env.WARPWRIGHT_TEST_DEVICE ?? 'cpu' };

before(async () => {
  if (process.env.WARPWRIGHT_CAPI_LIBRARY) return;
  await requireProgram('cargo', ['--version'], 'to build libwarpwright.so without napi');
  const built = await run('cargo', ['build', '--release', '--no-default-features', '--target-dir', 'target/capi'], { limit: 900_000 });
  assert.equal(built.code, 0, built.stderr);
}, { timeout: 1_000_000 });

test('both libraries are there', () => {
  assert.ok(existsSync(plain), `${plain} is missing`);
  assert.ok(addon && existsSync(addon), 'the addon (*.node in the root) is missing; npm run build makes it');
});

test('the plain library needs nothing of Node', async () => {
  const text = 'import ctypes, os, sys; ctypes.CDLL(sys.argv[1], mode=os.RTLD_NOW)';
  await requireProgram(python, ['--version'], 'to load the C ABI through ctypes');
  const result = await run(python, ['-c', text, plain]);
  assert.equal(result.code, 0, result.stderr);
});

for (const [name, library] of [['libwarpwright.so', () => plain], ['the addon', () => addon]]) {
  test(`Python ctypes against ${name}`, async () => {
    await requireProgram(python, ['--version'], 'to test the C ABI through ctypes');
    const result = await run(python, [join(root, '__test__/capi/aggregate.py'), library()], { env });
    assert.deepEqual([result.code, result.stdout, result.stderr], [0, 'done\n', '']);
  });
}

test('a C program against libwarpwright.so', async () => {
  await requireProgram(compiler, ['--version'], 'to test the C header');
  const program = join(folder, 'aggregate');
  const flags = ['-std=c99', '-Wall', '-Wextra', '-Werror', '-pedantic', '-I', join(root, 'include')];
  const built = await run(compiler, [...flags, join(root, '__test__/capi/aggregate.c'), '-o', program, plain, '-lm', `-Wl,-rpath,${dirname(plain)}`]);
  assert.equal(built.code, 0, built.stderr);
  const result = await run(program, [], { env: { ...env, LD_LIBRARY_PATH: dirname(plain) } });
  assert.deepEqual([result.code, result.stdout, result.stderr], [0, 'done\n', '']);
});

test('the header can be used from C++', async () => {
  await requireProgram(compiler, ['--version'], 'to test the C header');
  const source = join(folder, 'header.cpp');
  writeFileSync(source, '#include "warpwright.h"\nint (*f)(const double *, int32_t, int32_t, double *) = median_aggregate;\n');
  const built = await run(compiler, ['-x', 'c++', '-std=c++11', '-Wall', '-Werror', '-fsyntax-only', '-I', join(root, 'include'), source]);
  if (/cc1plus|not recognized|language/.test(built.stderr) && built.code !== 0) {
    assert.fail(`${compiler} cannot compile C++ here, which this test needs: ${built.stderr}`);
  }
  assert.equal(built.code, 0, built.stderr);
});

test('a device that is not there is an error code and leaves the result alone', async () => {
  const text = `
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
library.warpwright_last_error.restype = ctypes.c_char_p
result = ctypes.c_double(-7)
code = library.median_aggregate((ctypes.c_double * 1)(1), 1, 1, ctypes.byref(result))
print(code != 0, result.value, len(library.warpwright_last_error()) > 10)
`;
  await requireProgram(python, ['--version'], 'to test the C ABI through ctypes');
  const hidden = { WARPWRIGHT_DEVICE: 'cuda', WARPWRIGHT_DRIVER: '/nowhere/libcuda.so.1' };
  const result = await run(python, ['-c', text, plain], { env: hidden });
  assert.deepEqual([result.stdout, result.stderr], ['True -7.0 True\n', '']);
});
