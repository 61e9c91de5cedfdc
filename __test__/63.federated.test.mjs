import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { root, run } from './helpers/process.mjs';

test('the federated example: the mean fails beside hostile clients, robust rules hold', { timeout: 180_000 }, async () => {
  const { code, stdout, stderr } = await run(process.execPath, [join(root, 'examples/federated/index.mjs'), '--rounds', '15', '--device', 'cpu'], { limit: 170_000 });
  assert.deepEqual([code, stderr], [0, '']);
  const shares = Object.fromEntries([...stdout.matchAll(/^([\w, ]+?) +([\d.]+) %$/gm)].map(([, rule, share]) => [rule, Number(share)]));
  assert.equal(Object.keys(shares).length, 9, stdout);
  assert.ok(shares.mean < 20, stdout);
  for (const [rule, share] of Object.entries(shares)) if (rule !== 'mean') assert.ok(share > 60, `${rule}: ${stdout}`);
});
