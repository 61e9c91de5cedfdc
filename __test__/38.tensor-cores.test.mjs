import { test } from 'node:test';
import { convolutions, shared } from './cases/conv-tensor-cores.mjs';
import { cases } from './cases/tensor-cores.mjs';
import { device, requireDevice } from './helpers/device.mjs';
import { assertNone, failures } from './helpers/run.mjs';

/**
 * On the emulator, at compute capability 9.0 with one multiprocessor, these take every kernel of the split and half products
 * and of the split convolutions.
 */
test(`the test device ${device} is there`, requireDevice);

for (const row of [...cases, ...convolutions, ...shared]) {
  test(`${row.op}: ${row.name}`, async () => assertNone(await failures([row], 'accumulate'), 1));
}
