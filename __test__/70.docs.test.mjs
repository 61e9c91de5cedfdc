import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { test } from 'node:test';
import internal from '../lib/internal.js';
import { RUN_OPTIONS, SESSION_OPTIONS } from '../lib/session-options.js';
import { root } from './helpers/process.mjs';

const read = (name) => readFileSync(join(root, name), 'utf8');
const commonOptions = ['dims', 'device', 'precision', 'signal', 'transfer', 'type'];
const manifest = JSON.parse(read('package.json'));

/** Markdown files of the project. */
function pages(folder = root) {
  const skipped = new Set(['node_modules', 'target', '.git', '.cache', '.gpu', 'npm', 'shared']);
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (entry.isDirectory()) return skipped.has(entry.name) || entry.name.startsWith('.') ? [] : pages(join(folder, entry.name));
    return entry.name.endsWith('.md') ? [join(folder, entry.name)] : [];
  });
}

/** Names that head a section, or in backticks a table row. */
function headed(text, pattern) {
  return new Set([...text.matchAll(/^(?:#{2,4} `?|\| `)([A-Za-z]\w*)`?(?:\(.*|$| \|)/gm)].map((match) => match[1]).filter((name) => pattern.test(name)));
}

test('docs/errors.md lists exactly the codes', () => {
  const text = read('docs/errors.md');
  const codes = internal.errorTable().map((row) => row.code);
  assert.deepEqual([...headed(text, /^[A-Z][A-Z_]+$/)].sort(), codes.sort());
  for (const { code, meaning } of internal.errorTable()) assert.ok(text.includes(meaning), `${code}: its sentence is missing`);
});

test('docs/ops.md lists exactly the ops, their options and types', () => {
  const text = read('docs/ops.md');
  const table = internal.opTable();
  const names = new Set(table.map((op) => op.name));
  const written = headed(text, /^[a-z]\w*$/);
  const options = new Set(table.flatMap((op) => [...op.attributes, ...op.operands].map((part) => part.name)));
  assert.deepEqual([...names].filter((name) => !written.has(name)), [], 'ops without a section');
  assert.deepEqual([...written].filter((name) => !names.has(name) && !options.has(name) && !commonOptions.includes(name)), [], 'sections without an op');
  for (const op of table) {
    assert.ok(text.includes(op.doc), `${op.name}: its sentence is missing`);
    // Names of operands come from the object that holds them.
    const given = op.attributes.filter(({ kind }) => kind !== 'string[]');
    for (const attribute of given) assert.ok(text.includes(`\`${attribute.name}`), `${op.name}.${attribute.name}`);
  }
});

test('docs/aggregation.md lists exactly the rules, pre-aggregations and options, and api.md the common options', () => {
  const text = read('docs/aggregation.md');
  const { rules, pres, common } = internal.aggregateTable();
  const parameters = new Set([...common, ...[...rules, ...pres].flatMap((row) => row.parameters)].map(({ name }) => name));
  const tables = text.match(/<!-- tables: .*? -->\n([\s\S]*?)\n<!-- end -->/)[1];
  const written = [...tables.matchAll(/^\| `(\w+)` \|/gm)].map((match) => match[1]);
  assert.deepEqual(written.sort(), [...rules.map(({ name }) => name), ...pres.map(({ name }) => name), ...parameters].sort());
  for (const { name, doc } of [...rules, ...pres]) assert.ok(tables.includes(doc), `${name}: its sentence is missing`);
  for (const { name, bound } of rules) assert.ok(tables.includes(`| \`${name}\` | ${bound} |`), name);
  for (const name of internal.aggregateOptions()) assert.match(text, new RegExp(`^\\| \`${name}\` \\|`, 'm'), name);
  const typings = read('index.d.ts');
  for (const name of [...parameters, ...internal.aggregateOptions()]) assert.match(typings, new RegExp(`^  ${name}\\??:`, 'm'), name);
});

test('docs/model-support.md lists exactly the operators, with versions, calls and places', () => {
  const rows = [...read('docs/model-support.md').matchAll(/^\| `([\w.]+)` \| (\d+) \| (?:\[(\w+)\]\(.*?\))? \| (.*?) \| (.*?) \|$/gm)];
  const types = new Map(internal.opTable().map((op) => [op.name, op.dtypes.join(', ')]));
  const written = rows.map(([, name, since, op, dtypes, place]) => ({ name, since: Number(since), op, dtypes, place }));
    const table = internal.operatorTable().sort((a, b) => (a.name < b.name ? -1 : 1));
  const wanted = table.map(({ name, domain, since, op, host }) => ({
    name: domain ? `${domain}.${name}` : name,
    since,
    op,
    dtypes: op ? types.get(op) : '',
    place: host === undefined ? (op ? 'GPU' : 'plan') : host === '' ? 'host' : `GPU; host ${host}`,
  }));
  assert.deepEqual(written, wanted);
});

test('commands of the README exist', () => {
  const commands = [...read('README.md').matchAll(/\bnpm (?:run )?([a-z][\w:-]*)/g)].map((match) => match[1]);
  const own = new Set(['install', 'i', 'ci', 'pack', 'init', 'package', 'packages', 'version', 'publish']);
  const missing = commands.filter((name) => !own.has(name) && !manifest.scripts[name]);
  assert.deepEqual(missing, []);
  for (const name of ['start', 'test', 'test:gpu', 'build']) assert.ok(manifest.scripts[name], `npm script ${name}`);
});

test('relative links lead somewhere', () => {
  const broken = [];
  for (const page of pages()) {
    const text = readFileSync(page, 'utf8').replace(/```[\s\S]*?```/g, '');
    for (const [, target] of text.matchAll(/\]\(([^)\s]+)(?:\s+"[^"]*")?\)/g)) {
      if (/^[a-z]+:/.test(target)) continue;
      const [file, anchor] = target.split('#');
      const path = file === '' ? page : join(dirname(page), decodeURIComponent(file));
      if (!existsSync(path)) broken.push(`${relative(root, page)}: ${target}`);
      else if (anchor && path.endsWith('.md') && !anchors(path).has(anchor)) broken.push(`${relative(root, page)}: ${target} (no such heading)`);
    }
  }
  assert.deepEqual(broken, []);
});

/** Anchors of a page's headings, as GitHub forms them. */
function anchors(page) {
  const headings = readFileSync(page, 'utf8').matchAll(/^#{1,6} +(.+)$/gm);
  return new Set([...headings].map((match) => match[1].toLowerCase().replace(/[^\p{L}\p{N}\s_-]/gu, '').trim().replace(/\s/g, '-')));
}

test('versions agree', () => {
  const cargo = read('Cargo.toml').match(/^version = "([^"]+)"/m)[1];
  assert.equal(manifest.version, cargo);
  assert.match(read('CHANGELOG.md'), new RegExp(`^## \\[?${manifest.version.replaceAll('.', '\\.')}`, 'm'));
});

test('docs/migration.md lists exactly the options of sessions and runs, with what becomes of each', () => {
  const text = read('docs/migration.md');
  for (const [heading, table] of [['create', SESSION_OPTIONS], ['run', RUN_OPTIONS]]) {
    const section = text.split(/^## /m).find((part) => part.startsWith('Options of') && part.includes(`${heading}\``));
    const rows = Object.fromEntries([...section.matchAll(/^\| `(\w+)` \| (honoured|ignored)/gm)].map((match) => [match[1], match[2]]));
    assert.deepEqual(rows, table);
  }
});
