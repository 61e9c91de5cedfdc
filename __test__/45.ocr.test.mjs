// The networks of examples/ocr on the test device: a line of the sample page is small enough for the emulator.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { blank, load } from '../examples/ocr/image.mjs';
import { PageReader } from '../examples/ocr/reader.mjs';
import { device, location, requireDevice } from './helpers/device.mjs';

test(`the test device ${device} is there`, requireDevice);

/** @type {PageReader} */
let reader;
before(async () => (reader = await PageReader.create({ device, side: 640 })));
after(() => reader?.release());

/** A part of an image. */
function part({ width: stride, data }, left, top, width, height) {
  const result = blank(width, height);
  for (let y = 0; y < height; y++) {
    const start = ((top + y) * stride + left) * 3;
    result.data.set(data.subarray(start, start + width * 3), y * width * 3);
  }
  return result;
}

test('both networks run where they were asked to', () => assert.equal(reader.device, location));

test('a line of the page is read', async () => {
  const page = await load(new URL('../examples/ocr/page.png', import.meta.url));
  const progress = [];
  const { rows, times } = await reader.read(part(page, 60, 385, 320, 40), (fraction) => progress.push(fraction));
  assert.deepEqual(rows.map((row) => row.map(({ text }) => text)), [['Fares and luggage']]);
  assert.ok(rows[0][0].confidence > 0.98 && rows[0][0].score > 0.7, `confidence ${rows[0][0].confidence}, score ${rows[0][0].score}`);
  assert.ok(Object.values(times).every((ms) => ms > 0));
  assert.deepEqual(progress, [0, 0.4, 1]);
});

test('an empty page has no rows', async () => {
  const page = blank(40, 40);
  page.data.fill(250);
  const progress = [];
  const { rows } = await reader.read(page, (fraction) => progress.push(fraction));
  assert.deepEqual(rows, []);
  assert.deepEqual(progress, [0, 0.4, 1]);
});
