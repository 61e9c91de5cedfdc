import assert from 'node:assert/strict';
import internal from '../../lib/internal.js';
import { aggregate } from '../../index.mjs';
import { generator } from './random.mjs';

/** The tables of rules and pre-aggregations. */
export const table = internal.aggregateTable();

/** Options with which a rule runs on n rows, f of them hostile. */
export function optionsOf(name, n, f) {
  const { required } = table.rules.find((rule) => rule.name === name);
  const values = { f, 'f or fraction': f, weights: Array.from({ length: n }, (_, i) => 1 + (i % 3)), tau: 1.5, trusted: n - 1 };
  const given = Object.fromEntries(required.map((need) => [need.split(' ')[0], values[need]]));
  return { rule: name, f, ...given };
}

/** Most hostile rows that a rule takes among n; -1 where it takes none at all. */
export function most(name, n) {
  const { bound } = table.rules.find((rule) => rule.name === name);
  if (bound === 'n - f - 2 >= 1') return Math.min(n - 3, Math.floor((n - 3) / 2));
  if (bound === 'n >= 4f + 3') return Math.floor((n - 3) / 4);
  if (bound.endsWith('n <= 20') && n > 20) return -1;
  return Math.floor((n - 1) / 2);
}

/** Normal random rows. */
export function randomRows(n, d, seed) {
  const random = generator(seed);
  const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  return Array.from({ length: n }, () => Array.from({ length: d }, normal));
}

/** One array of rows of that type. */
export const flat = (rows, type = Float64Array) => type.from(rows.flat());

/** Runs a rule on lists of numbers on the CPU. */
export const run = (rows, options, type = Float64Array) =>
  aggregate(flat(rows, type), { dims: [rows.length, rows[0].length], device: 'cpu', ...options });

/** Asserts that all numbers are within a part of max(1, |wanted|); 0 is equality but for the sign of zero. */
export function near(got, want, tolerance, what) {
  assert.equal(got.length, want.length, what);
  for (let i = 0; i < want.length; i++) {
    const same = Number.isNaN(want[i]) ? Number.isNaN(got[i]) : got[i] === want[i] || Math.abs(got[i] - want[i]) <= tolerance * Math.max(1, Math.abs(want[i]));
    assert.ok(same, `${what}: [${i}] is ${got[i]}, expected ${want[i]}`);
  }
}
