import { test } from 'node:test';
import { cases, emulated } from './cases/tensor-cores.mjs';
import { device, requireDevice } from './helpers/device.mjs';
import { assertNone, failures } from './helpers/run.mjs';

/** On the emulator, at compute capability 9.0 with one multiprocessor, these take every kernel of the half products. */
test(`the test device ${device} is there`, requireDevice);

for (const row of process.env.WARPWRIGHT_EMULATOR ? emulated : cases) {
  test(`matmul: ${row.name}`, async () => assertNone(await failures([row], 'accumulate'), 1));
}
