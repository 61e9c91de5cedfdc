// The parts of examples/ocr that compute: values worked out by hand, and searches done the slow way.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { characterAccuracy, filledLines, levenshtein } from '../examples/ocr/accuracy.mjs';
import { boxesOf, detectionInput, meanInside, textAreas } from '../examples/ocr/detect.mjs';
import { annotate, colourOf, drawNumber } from '../examples/ocr/draw.mjs';
import { convexHull, cornersOf, grow, smallestRectangle } from '../examples/ocr/geometry.mjs';
import { blank, load, resize, savePng, taps, toRgb, writePlanes } from '../examples/ocr/image.mjs';
import { readingOrder } from '../examples/ocr/order.mjs';
import { addSample, batchesOf, charactersOf, cutOut, decodeCtc, recognitionInput } from '../examples/ocr/recognise.mjs';

const folder = mkdtempSync(join(tmpdir(), 'warpwright-ocr-'));
after(() => rmSync(folder, { recursive: true, force: true }));

const close = (got, want, tolerance = 1e-6) => {
  const [a, b] = [[got].flat(2), [want].flat(2)];
  assert.equal(a.length, b.length);
  a.forEach((value, i) => assert.ok(Math.abs(value - b[i]) <= tolerance, `${JSON.stringify(got)} is not ${JSON.stringify(want)}`));
};

/** Numbers from 0 to 1, the same each time. */
function randoms(seed) {
  let state = seed;
  return () => (state = (state * 1103515245 + 12345) % 2 ** 31) / 2 ** 31;
}

/** An image of one channel's values, repeated. */
function greys(rows) {
  const pixels = Uint8Array.from(rows.flat());
  return toRgb(pixels, rows[0].length, rows.length, 1);
}

/** The first channel as rows. */
const rowsOf = ({ width, height, data }) =>
  Array.from({ length: height }, (_, y) => Array.from({ length: width }, (__, x) => data[(y * width + x) * 3]));

test('levenshtein counts the fewest edits', () => {
  for (const [a, b, want] of [['', '', 0], ['', 'abc', 3], ['abc', '', 3], ['kitten', 'sitting', 3], ['flaw', 'lawn', 2], ['same', 'same', 0], ['ab', 'ba', 2], ['a😀b', 'ab', 1]]) {
    assert.equal(levenshtein(a, b), want, `${a} and ${b}`);
  }
});

test('accuracy counts spaces and line ends and skips empty lines', () => {
  assert.deepEqual(filledLines(' a\n\n b c \r\n'), ['a', 'b c']);
  assert.deepEqual(characterAccuracy('ab\n\ncd\n', 'ab\ncd'), { errors: 0, length: 5, accuracy: 1 });
  assert.deepEqual(characterAccuracy('ab cd', 'abcd'), { errors: 1, length: 5, accuracy: 0.8 });
  assert.equal(characterAccuracy('a', 'xyz').accuracy, 0);
  assert.equal(characterAccuracy('', '').accuracy, 1);
});

test('hulls of a square with points inside and on its sides, of a line, of a point', () => {
  const hull = convexHull([[0, 0], [4, 4], [2, 2], [4, 0], [2, 0], [0, 4], [1, 3]]);
  assert.deepEqual(hull, [[0, 0], [4, 0], [4, 4], [0, 4]]);
  assert.deepEqual(convexHull([[0, 0], [1, 1], [3, 3]]), [[0, 0], [3, 3]]);
  assert.deepEqual(convexHull([[5, 6]]), [[5, 6]]);
});

test('the smallest rectangle of a turned one is itself', () => {
  for (const degrees of [-44, -20, -3, 0, 1, 17, 44]) {
    const angle = (degrees * Math.PI) / 180;
    const wanted = { centre: [50, 40], width: 60, height: 12, angle };
    const found = smallestRectangle([...cornersOf(wanted), wanted.centre]);
    close([found.centre, found.width, found.height, found.angle], [wanted.centre, 60, 12, angle]);
  }
});

test('the smallest rectangle is as small as any of 1,800 angles gives', () => {
  const random = randoms(7);
  for (let round = 0; round < 20; round++) {
    const points = Array.from({ length: 3 + round }, () => [random() * 100, random() * 30]);
    const found = smallestRectangle(points);
    let least = Infinity;
    for (let step = 0; step < 1800; step++) {
      const [cos, sin] = [Math.cos((step * Math.PI) / 3600), Math.sin((step * Math.PI) / 3600)];
      const [u, v] = [points.map(([x, y]) => x * cos + y * sin), points.map(([x, y]) => y * cos - x * sin)];
      least = Math.min(least, (Math.max(...u) - Math.min(...u)) * (Math.max(...v) - Math.min(...v)));
    }
    assert.ok(found.width * found.height <= least + 1e-9);
    const [cos, sin] = [Math.cos(found.angle), Math.sin(found.angle)];
    for (const [x, y] of points) {
      const [dx, dy] = [x - found.centre[0], y - found.centre[1]];
      assert.ok(Math.abs(dx * cos + dy * sin) <= found.width / 2 + 1e-9 && Math.abs(dy * cos - dx * sin) <= found.height / 2 + 1e-9);
    }
  }
});

test('corners go clockwise from the top left, and growing moves every side', () => {
  const rectangle = { centre: [10, 5], width: 8, height: 4, angle: 0 };
  close(cornersOf(rectangle), [[6, 3], [14, 3], [14, 7], [6, 7]]);
  close(cornersOf(grow(rectangle, 2)), [[4, 1], [16, 1], [16, 9], [4, 9]]);
  close(cornersOf({ ...rectangle, angle: Math.PI / 2 }), [[12, 1], [12, 9], [8, 9], [8, 1]]);
});

test('areas join diagonal neighbours and keep the ends of their runs', () => {
  const picture = ['##..#', '..#..', '.....', '#.###'];
  const values = Float32Array.from(picture.join(''), (mark) => (mark === '#' ? 0.9 : 0.1));
  const areas = textAreas({ values, width: 5, height: 4 }).map((ends) => [...new Set(ends.map(String))].sort());
  assert.deepEqual(areas, [['0,0', '1,0', '2,1'], ['4,0'], ['0,3'], ['2,3', '4,3']]);
});

test('areas wind through a spiral, and edges do not meet around the corner', () => {
  const picture = ['#######', '......#', '#####.#', '#...#.#', '#.###.#', '#.....#', '#######'];
  const values = Float32Array.from(picture.join(''), (mark) => Number(mark === '#'));
  assert.equal(textAreas({ values, width: 7, height: 7 }).length, 1);
  const edges = ['..#', '...', '#..'];
  assert.equal(textAreas({ values: Float32Array.from(edges.join(''), (mark) => Number(mark === '#')), width: 3, height: 3 }).length, 2);
});

test('the mean inside a rectangle takes pixels whose centres lie in it', () => {
  const values = Float32Array.from({ length: 16 }, (_, i) => i);
  const map = { values, width: 4, height: 4 };
  assert.equal(meanInside(map, { centre: [1.5, 1.5], width: 1, height: 1, angle: 0 }), (5 + 6 + 9 + 10) / 4);
  assert.equal(meanInside(map, { centre: [1, 1], width: 3, height: 0.1, angle: Math.PI / 4 }), 5);
  assert.equal(meanInside(map, { centre: [-9, -9], width: 1, height: 1, angle: 0 }), 0);
});

test('boxes are found, grown and brought to the image, specks and weak areas are not', () => {
  const [width, height] = [64, 32];
  const values = new Float32Array(width * height);
  const fill = (left, top, right, bottom, value) => {
    for (let y = top; y <= bottom; y++) values.fill(value, y * width + left, y * width + right + 1);
  };
  fill(10, 8, 50, 14, 0.9);
  fill(2, 20, 3, 21, 0.9);
  fill(20, 24, 40, 29, 0.4);
  const boxes = boxesOf({ values, width, height }, { width: 128, height: 96 });
  assert.equal(boxes.length, 1);
  close(boxes[0].score, 0.9);
  // 40 by 6 between centres, grown by 1.5 * 240 / 92; twice as wide and three times as high on the image.
  const more = (1.5 * 240) / 92;
  const at = (x, y) => [(x + 0.5) * 2 - 0.5, (y + 0.5) * 3 - 0.5];
  close(boxes[0].corners, [at(10 - more, 8 - more), at(50 + more, 8 - more), at(50 + more, 14 + more), at(10 - more, 14 + more)], 1e-4);
});

test('rows are read down and across, on a tilted page too', () => {
  const words = [['d', 10, 60], ['b', 300, 12], ['a', 10, 10], ['c', 160, 58], ['e', 20, 110]];
  for (const degrees of [0, 8, -15]) {
    const angle = (degrees * Math.PI) / 180;
    const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
    const boxes = words.map(([name, x, y]) => ({
      name, corners: cornersOf({ centre: [x * cos - y * sin, x * sin + y * cos], width: 90, height: 30, angle }),
    }));
    assert.deepEqual(readingOrder(boxes).map((row) => row.map(({ name }) => name).join('')), ['ab', 'dc', 'e']);
  }
  assert.deepEqual(readingOrder([]), []);
});

test('taps sum to 1, halve by triangles, double by quarters', () => {
  for (const [from, to] of [[7, 3], [3, 7], [1, 5], [5, 1], [100, 32], [4, 4]]) {
    for (const { first, weights } of taps(from, to)) {
      close(weights.reduce((sum, weight) => sum + weight, 0), 1);
      assert.ok(first >= 0 && first + weights.length <= from);
    }
  }
  const [, middle] = taps(8, 4);
  assert.equal(middle.first, 1);
  close(middle.weights, [0.125, 0.375, 0.375, 0.125]);
  close(taps(2, 4).map(({ weights }) => weights), [[1], [0.75, 0.25], [0.25, 0.75], [1]]);
});

test('resizing keeps a flat image flat and a ramp a ramp', () => {
  const flat = resize(greys(Array(9).fill(Array(13).fill(77))), 5, 20);
  assert.ok(flat.data.every((value) => value === 77));
  assert.deepEqual(rowsOf(resize(greys([[0, 100], [100, 200]]), 4, 2)), [[0, 25, 75, 100], [100, 125, 175, 200]]);
  // Weights 3, 3, 1 of 8 inside the image, which sum to 7.
  assert.deepEqual(rowsOf(resize(greys([[0], [70], [140], [210]]), 1, 2)), [[50], [160]]);
  const image = greys([[3, 99, 7], [250, 0, 41]]);
  assert.deepEqual(resize(image, 3, 2), image);
});

test('images of one to four channels become three, transparency white', () => {
  assert.deepEqual([...toRgb(Uint8Array.of(9, 200), 2, 1, 1).data], [9, 9, 9, 200, 200, 200]);
  assert.deepEqual([...toRgb(Uint8Array.of(100, 255, 100, 0), 2, 1, 2).data], [100, 100, 100, 255, 255, 255]);
  assert.deepEqual([...toRgb(Uint8Array.of(1, 2, 3), 1, 1, 3).data], [1, 2, 3]);
  assert.deepEqual([...toRgb(Uint8Array.of(0, 0, 255, 51), 1, 1, 4).data], [204, 204, 255]);
});

test('PNG files come back as they were written', async () => {
  const random = randoms(3);
  const image = blank(5, 7);
  image.data.forEach((_, i) => (image.data[i] = random() * 256));
  const path = join(folder, 'image.png');
  await savePng(image, path);
  assert.deepEqual(await load(path), image);
  await assert.rejects(load(join(folder, 'absent.png')), { code: 'ENOENT' });
});

test('planes are blue, green, red, normalised, with rows of the stride', () => {
  const into = new Float32Array(3 * 3).fill(9);
  writePlanes({ width: 2, height: 1, data: Uint8ClampedArray.of(255, 0, 51, 0, 102, 255) }, into, 3, { mean: [0.5, 0, 0], deviation: [0.5, 1, 2] });
  close([...into], [-0.6, 1, 9, 0, 0.4, 9, 0.5, 0, 9]);
});

test('the detection network takes multiples of 32, no larger than asked', () => {
  const dims = (width, height, side) => detectionInput(blank(width, height), side).dims;
  assert.deepEqual(dims(1000, 500, 640), [1, 3, 320, 640]);
  assert.deepEqual(dims(100, 60, 640), [1, 3, 64, 96]);
  assert.deepEqual(dims(5, 400, 320), [1, 3, 320, 32]);
});

test('samples are bilinear and repeat the edge', () => {
  const image = greys([[0, 100], [50, 250]]);
  const at = (x, y) => {
    const sums = [0, 0, 0];
    addSample(image, x, y, sums);
    return sums[1];
  };
  assert.deepEqual([at(0, 0), at(1, 1), at(0.5, 0), at(0, 0.5), at(0.5, 0.5), at(-3, -3), at(9, 0.5)], [0, 250, 50, 25, 100, 0, 175]);
});

test('a cut-out of an upright box is the box, of a turned one is turned back', () => {
  const random = randoms(11);
  const image = blank(200, 160);
  image.data.forEach((_, i) => (image.data[i] = random() * 256));
  const cut = cutOut(image, [[20, 30], [116, 30], [116, 78], [20, 78]]);
  assert.deepEqual([cut.width, cut.height], [96, 48]);
  // Samples are taken at the centres of pixels, half a pixel in from the corners.
  const sums = [0, 0, 0];
  addSample(image, 20.5, 30.5, sums);
  close([...cut.data.subarray(0, 3)], sums.map(Math.round), 1);
  const angle = 0.3;
  const drawn = blank(200, 160);
  for (let i = 0; i < 200 * 160; i++) {
    const [dx, dy] = [(i % 200) - 100, Math.floor(i / 200) - 80];
    drawn.data.fill(128 + 100 * Math.tanh((dx * Math.cos(angle) + dy * Math.sin(angle)) / 4), i * 3, i * 3 + 3);
  }
  const turned = cutOut(drawn, cornersOf({ centre: [100, 80], width: 96, height: 24, angle }));
  assert.deepEqual([turned.width, turned.height], [192, 48]);
  for (let y = 0; y < 48; y++) {
    for (const [x, want] of [[20, 28], [96, 128 + 100 * Math.tanh(0.25 / 4)], [180, 228]]) close(turned.data[(y * 192 + x) * 3], want, 2);
  }
});

test('large text is sampled more than once a pixel', () => {
  const stripes = greys(Array.from({ length: 192 }, (_, y) => Array(192).fill(y % 2 ? 255 : 0)));
  const cut = cutOut(stripes, [[-0.5, -0.5], [191.5, -0.5], [191.5, 191.5], [-0.5, 191.5]]);
  assert.equal(cut.height, 48);
  for (const value of cut.data) close(value, 127.5, 1);
});

test('batches hold few cut-outs of like widths, each cut-out once', () => {
  assert.deepEqual(batchesOf([700, 100, 320, 321, 690]), [
    { width: 320, members: [1, 2] }, { width: 384, members: [3] }, { width: 704, members: [4, 0] },
  ]);
  const many = batchesOf(Array(19).fill(64));
  assert.deepEqual(many.map(({ members }) => members.length), [8, 8, 3]);
  assert.deepEqual(many.flatMap(({ members }) => members).sort((a, b) => a - b), [...Array(19).keys()]);
  assert.deepEqual(batchesOf([]), []);
});

test('the recognition network takes cut-outs on mid-grey', () => {
  const cut = blank(2, 48);
  cut.data.fill(255);
  const { data, dims } = recognitionInput([cut, blank(1, 48)], 4);
  assert.deepEqual(dims, [2, 3, 48, 4]);
  assert.deepEqual([...data.subarray(0, 8)], [1, 1, 0, 0, 1, 1, 0, 0]);
  assert.deepEqual([...data.subarray(3 * 48 * 4, 3 * 48 * 4 + 4)], [-1, 0, 0, 0]);
});

const characters = charactersOf('a\nb\n');

/** Likelihoods of the classes gap, a, b and space, a step each. */
const steps = (...rows) => Float32Array.from(rows.flat());

test('a dictionary is between the gap and the space', () => {
  assert.deepEqual(characters, ['', 'a', 'b', ' ']);
  assert.deepEqual(charactersOf('a\r\nb'), ['', 'a', 'b', ' ']);
});

test('repeats count once unless a gap parts them', () => {
  const [gap, a, b] = [[0.9, 0.1, 0, 0], [0.2, 0.8, 0, 0], [0.4, 0, 0.6, 0]];
  const { text, confidence } = decodeCtc(steps(gap, a, a, gap, a, b, b, gap), characters);
  assert.equal(text, 'aab');
  close(confidence, (0.8 + 0.8 + 0.6) / 3);
  assert.deepEqual(decodeCtc(steps(gap, gap), characters), { text: '', confidence: 0 });
  assert.deepEqual(decodeCtc(steps(), characters), { text: '', confidence: 0 });
});

test('a space comes once, between characters, and from a trace in a gap', () => {
  const [gap, a, space, trace, less] = [[0.99, 0.01, 0, 0], [0, 1, 0, 0], [0.1, 0, 0, 0.9], [0.97, 0, 0, 0.03], [0.99, 0, 0, 0.01]];
  const read = (...rows) => decodeCtc(steps(...rows), characters).text;
  assert.equal(read(space, a, space, space, gap, a, space), 'a a');
  assert.equal(read(a, trace, gap, trace, a), 'a a');
  assert.equal(read(a, less, a), 'aa');
  assert.equal(read(trace, a, trace), 'a');
});

test('annotations outline boxes on a copy, coloured by confidence', () => {
  const image = greys(Array(20).fill(Array(30).fill(255)));
  const corners = [[10, 5], [25, 5], [25, 15], [10, 15]];
  const result = annotate(image, [{ corners, confidence: 1 }]);
  assert.ok(image.data.every((value) => value === 255));
  const pixel = (x, y) => [...result.data.subarray((y * 30 + x) * 3, (y * 30 + x) * 3 + 3)];
  for (const [x, y] of [[10, 5], [18, 5], [25, 10], [10, 12], [25, 15]]) assert.deepEqual(pixel(x, y), colourOf(1));
  assert.deepEqual(pixel(15, 10), [255, 255, 255]);
  assert.deepEqual(colourOf(1), [0, 160, 40]);
  assert.deepEqual(colourOf(0.5), [220, 40, 40]);
  assert.deepEqual(colourOf(0.1), colourOf(0.5));
  annotate(image, [{ corners: [[-5, -5], [99, -5], [99, 99], [-5, 99]], confidence: 0.9 }]);
});

test('numbers are drawn to the left of their place', () => {
  const image = blank(12, 6);
  drawNumber(image, 17, [12, 0], 1, [255, 255, 255]);
  assert.deepEqual(rowsOf(image).map((row) => row.map((value) => (value ? '#' : '.')).join('')), [
    '.....#..###.', '....##....#.', '.....#....#.', '.....#....#.', '....###...#.', '............',
  ]);
});
