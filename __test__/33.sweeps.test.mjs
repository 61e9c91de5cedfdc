// Random shapes and options against the float64 oracle. WARPWRIGHT_SWEEPS is the number of cases of each op, WARPWRIGHT_SWEEPS_SEED
// makes others of them.
import { test } from 'node:test';
import { levelOf } from './cases/index.mjs';
import { sweep, swept } from './cases/sweeps.mjs';
import { device, requireDevice } from './helpers/device.mjs';
import { assertNone, failures } from './helpers/run.mjs';

const count = Number(process.env.WARPWRIGHT_SWEEPS ?? 60);
const seed = Number(process.env.WARPWRIGHT_SWEEPS_SEED ?? 1);

test(`the test device ${device} is there`, requireDevice);

for (const name of swept) {
  test(`${count} random cases of ${name} agree with the oracle`, async () => {
    const rows = sweep(name, count, seed);
    assertNone(await failures(rows, levelOf[rows[0].op]), rows.length);
  });
}
