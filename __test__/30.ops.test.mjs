import assert from 'node:assert/strict';
import { test } from 'node:test';
import internal from '../lib/internal.js';
import { cases, levelOf } from './cases/index.mjs';
import { device, requireDevice } from './helpers/device.mjs';
import { assertNone, failures } from './helpers/run.mjs';
import { oracle } from './oracle/index.mjs';

const table = internal.opTable();

test(`the test device ${device} is there`, requireDevice);

test('every op of the table has cases, an oracle and a level, and every case an op', () => {
  const known = new Set(table.map((op) => op.name));
  const tested = new Set(cases.map((row) => row.op));
  assert.deepEqual([...known].filter((name) => !tested.has(name)), [], 'ops without a case');
  assert.deepEqual([...tested].filter((name) => !known.has(name)), [], 'cases without an op');
  assert.deepEqual([...known].filter((name) => !oracle[name]), [], 'ops without an oracle');
});

test('tolerance levels are those that the tests name', () => {
  for (const { name, tolerance } of table) assert.equal(tolerance, levelOf[name], name);
});

test('cases have names of their own', () => {
  const seen = new Set();
  for (const row of cases) {
    const name = `${row.op} ${row.name}`;
    assert.ok(!seen.has(name), `two cases are called ${name}`);
    seen.add(name);
  }
});

for (const op of Object.keys(levelOf)) {
  test(`${op} agrees with the oracle`, async () => {
    const rows = cases.filter((row) => row.op === op);
    assertNone(await failures(rows.map((row) => ({ level: levelOf[row.as], ...row })), levelOf[op]), rows.length);
  });
}
