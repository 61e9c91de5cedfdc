import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as w from '../index.mjs';
import internal from '../lib/internal.js';
import { device, requireDevice } from './helpers/device.mjs';
import { rejects } from './helpers/errors.mjs';
import { evaluate } from './helpers/process.mjs';

const { Tensor } = w;
const f32 = (n) => new Float32Array(n);
const tensor = (dims, type = 'float32') => new Tensor(type, type === 'float64' ? new Float64Array(dims.reduce((a, b) => a * b, 1)) : f32(dims.reduce((a, b) => a * b, 1)), dims);

/** A call of lstm over [3, 2, 4] with 5 hidden units. */
const lstm = (options, w_ = [1, 20, 4], r = [1, 20, 5]) => w.lstm(tensor([3, 2, 4]), tensor(w_), tensor(r), { device, ...options });

/** A call of attention with two heads over three queries and four keys. */
const attention = (options, k = [1, 2, 4, 6], v = k) => w.attention(tensor([1, 2, 3, 6]), tensor(k), tensor(v), { device, ...options });

test(`the test device ${device} is there`, requireDevice);

/** [name, call, codes, what the message holds...] */
const rows = [
  ['no operand', () => w.relu(), 'INVALID_ARGUMENT', 'relu', 'x'],
  ['null', () => w.relu(null, { device }), 'INVALID_ARGUMENT', 'relu', 'null'],
  ['a number', () => w.relu(5, { device }), 'INVALID_ARGUMENT', 'relu', '5'],
  ['a text', () => w.relu('abc', { device }), 'INVALID_ARGUMENT', 'relu', 'abc'],
  ['a plain list', () => w.relu([1, 2], { device }), 'INVALID_ARGUMENT', 'relu'],
  ['an ArrayBuffer', () => w.relu(new ArrayBuffer(8), { device }), 'INVALID_ARGUMENT', 'relu', 'ArrayBuffer'],
  ['a DataView', () => w.relu(new DataView(new ArrayBuffer(8)), { device }), 'INVALID_ARGUMENT', 'relu', 'DataView'],
  ['the second operand missing', () => w.add(f32(2)), 'INVALID_ARGUMENT', 'add', 'b'],
  ['options in the place of an operand', () => w.add(f32(2), { device }), 'INVALID_ARGUMENT', 'add', 'b'],
  ['options that are no object', () => w.relu(f32(2), 5), 'INVALID_ARGUMENT', 'relu', 'options'],
  ['one argument too many', () => w.relu(f32(2), { device }, f32(2)), 'INVALID_ARGUMENT', 'relu'],
  ['an integer type', () => w.exp(new Int32Array(2), { device }), 'UNSUPPORTED_DTYPE', 'exp', 'int32', 'float32'],
  ['an unsigned type', () => w.neg(new Uint8Array(2), { device }), 'UNSUPPORTED_DTYPE', 'neg', 'uint8', 'int8'],
  ['a signed type', () => w.bitShift(new Int32Array(2), new Int32Array(2), { device }), 'UNSUPPORTED_DTYPE', 'bitShift', 'int32', 'uint32'],
  ['two integer types', () => w.less(new Int8Array(2), new Uint8Array(2), { device }), 'INVALID_ARGUMENT', 'less', 'int8', 'uint8'],
  ['bits of a float', () => w.bitwiseNot(f32(2), { device }), 'UNSUPPORTED_DTYPE', 'bitwiseNot', 'float32', 'uint8'],
  ['a direction that is none', () => w.bitShift(new Uint8Array(2), new Uint8Array(2), { device, direction: 'up' }), 'INVALID_ARGUMENT', 'direction', "'left'", 'up'],
  ['truth of numbers', () => w.and(f32(2), new Uint8Array(2), { device }), 'INVALID_ARGUMENT', 'and', "'a'", 'bool'],
  ['a condition that is a number', () => w.where(tensor([2]), tensor([2]), tensor([2]), { device }), 'UNSUPPORTED_DTYPE', "'condition'", 'bool', 'float32'],
  ['a condition of other dims', () => w.where(new Uint8Array(2), f32(3), f32(3), { device }), 'SHAPE_MISMATCH', 'where', '[2]', '[3]'],
  ['choices of two types', () => w.where(new Uint8Array(2), f32(2), new Float64Array(2), { device }), 'INVALID_ARGUMENT', 'where', 'float64'],
  ['the choice without an alternative', () => w.where(new Uint8Array(2), f32(2), { device }), 'INVALID_ARGUMENT', 'where', "'b'"],
  ['a modulus of floats', () => w.mod(f32(2), f32(2), { device }), 'INVALID_ARGUMENT', 'mod', 'fmod', 'float32'],
  ['a limit between whole numbers', () => w.clip(new Int8Array(2), { device, min: 0.5 }), 'INVALID_ARGUMENT', 'clip', "'min'", '0.5'],
  ['a limit that is NaN', () => w.clip(new Int8Array(2), { device, max: NaN }), 'INVALID_ARGUMENT', 'clip', "'max'", 'NaN'],
  ['slopes beyond x', () => w.prelu(f32(2), f32(6), { device, dims: [[2], [3, 2]] }), 'SHAPE_MISMATCH', 'prelu', "'slope'", '[3, 2]'],
  ['an integer tensor', () => w.matmul(new Tensor('int8', new Int8Array(4), [2, 2]), tensor([2, 2]), { device }), 'UNSUPPORTED_DTYPE', 'matmul', 'int8', 'float32'],
  ['two element types', () => w.add(f32(2), new Float64Array(2), { device }), ['INVALID_ARGUMENT', 'UNSUPPORTED_DTYPE'], 'add', 'float32', 'float64'],
  ['two element types, optional operand', () => w.matmul(tensor([2, 2]), tensor([2, 2]), { device, bias: new Float64Array(2) }), ['INVALID_ARGUMENT', 'UNSUPPORTED_DTYPE'], 'bias', 'float64'],
  ['arrays and tensors mixed', () => w.add(f32(2), tensor([2]), { device, dims: [[2], [2]] }), 'INVALID_ARGUMENT', 'add'],

  ['an operand that must be a list', () => w.concat(f32(2), { device, axis: 0 }), 'INVALID_ARGUMENT', 'concat', 'inputs', 'list'],
  ['an empty list', () => w.concat([], { device, axis: 0 }), 'INVALID_ARGUMENT', 'concat', 'inputs'],
  ['a number in a list', () => w.concat([f32(2), 5], { device, axis: 0 }), 'INVALID_ARGUMENT', 'concat', 'inputs', '5'],
  ['two element types in a list', () => w.concat([f32(2), new Float64Array(2)], { device, axis: 0 }), 'INVALID_ARGUMENT', 'float32', 'float64'],
  ['indices that are floats', () => w.gather(f32(2), f32(1), { device }), 'UNSUPPORTED_DTYPE', 'gather', 'indices', 'float32', 'int64'],

  ['weights for one direction where there are two', () => lstm({ direction: 'bidirectional' }), 'SHAPE_MISMATCH', 'lstm', 'w', '[2, 20, 4]'],
  ['weights of another width', () => lstm({}, [1, 20, 3]), 'SHAPE_MISMATCH', 'lstm', 'w', '[1, 20, 4]'],
  ['weights without a direction', () => lstm({}, [20, 4]), 'SHAPE_MISMATCH', 'lstm', 'w', 'rank 3'],
  ['a state of other dims', () => lstm({ initialC: tensor([2, 1, 5]) }), 'SHAPE_MISMATCH', 'lstm', 'initialC', '[1, 2, 5]'],
  ['lengths beyond the steps', () => lstm({ sequenceLens: new Tensor('int32', new Int32Array([3, 4]), [2]) }), 'OUT_OF_RANGE', 'lstm', 'sequenceLens', '0 to 3', '4'],
  ['lengths that are floats', () => lstm({ sequenceLens: tensor([2]) }), 'UNSUPPORTED_DTYPE', 'lstm', 'sequenceLens', 'int32'],
  ['too few gate functions', () => lstm({ activations: ['tanh'] }), 'INVALID_ARGUMENT', 'lstm', 'activations', '3'],
  ['an unknown gate function', () => lstm({ activations: ['tanh', 'tanh', 'cosine'] }), 'INVALID_ARGUMENT', 'lstm', 'activations', 'cosine'],
  ['gate functions that are no list', () => lstm({ activations: 'tanh' }), 'INVALID_ARGUMENT', 'lstm', 'activations', 'list'],
  ['parameters that no gate function takes', () => lstm({ activationAlpha: [1] }), 'INVALID_ARGUMENT', 'lstm', 'activationAlpha'],
  ['a clip below 0', () => lstm({ clip: -1 }), 'INVALID_ARGUMENT', 'lstm', 'clip', '-1'],
  ['a layout that is none', () => lstm({ layout: 2 }), 'INVALID_ARGUMENT', 'lstm', 'layout', '2'],

  ['no type to quantise to', () => w.quantizeLinear(f32(4), f32(1), { device }), 'INVALID_ARGUMENT', 'quantizeLinear', 'outputType'],
  ['a type that nothing is quantised to', () => w.quantizeLinear(f32(4), f32(1), { device, outputType: 'int32' }), 'INVALID_ARGUMENT', 'outputType', 'int32'],
  ['a zero point of another type', () => w.quantizeLinear(f32(4), f32(1), { device, outputType: 'int8', zeroPoint: new Uint8Array(1) }), 'INVALID_ARGUMENT', 'zeroPoint', 'int8', 'uint8'],
  ['scales for another axis', () => w.quantizeLinear(tensor([2, 3]), tensor([2]), { device, outputType: 'int8' }), 'SHAPE_MISMATCH', 'scale', '[3]', '[2]'],
  ['scales for other blocks', () => w.quantizeLinear(tensor([2, 6]), tensor([2, 2]), { device, outputType: 'int8', blockSize: 2 }), 'SHAPE_MISMATCH', 'scale', '[2, 3]'],
  ['whole numbers of other lengths', () => w.matMulInteger(new Uint8Array(6), new Int8Array(8), { device, dims: [[2, 3], [4, 2]] }), 'SHAPE_MISMATCH', 'matMulInteger', '[2, 3]', '[4, 2]'],
  ['floats for whole numbers', () => w.matMulInteger(f32(6), new Int8Array(6), { device, dims: [[2, 3], [3, 2]] }), 'UNSUPPORTED_DTYPE', 'matMulInteger', 'a', 'float32'],
  ['zero points for other rows', () => w.matMulInteger(new Uint8Array(6), new Int8Array(6), { device, dims: [[2, 3], [3, 2], [3]], aZeroPoint: new Uint8Array(3) }), 'SHAPE_MISMATCH', 'aZeroPoint'],
  ['an integer convolution of the wrong rank', () => w.convInteger(new Uint8Array(6), new Int8Array(6), { device, dims: [[2, 3], [3, 2]] }), 'SHAPE_MISMATCH', 'convInteger', 'x'],

  ['keys of another size', () => attention({}, [1, 2, 4, 5]), 'SHAPE_MISMATCH', 'attention', 'k', '5', '6'],
  ['keys and values of other lengths', () => attention({}, [1, 2, 4, 6], [1, 2, 5, 6]), 'SHAPE_MISMATCH', 'attention', 'v', '5'],
  ['heads that are not shared evenly', () => attention({}, [1, 3, 4, 6]), 'SHAPE_MISMATCH', 'attention', 'heads', '3'],
  ['another batch of keys', () => attention({}, [2, 2, 4, 6]), 'SHAPE_MISMATCH', 'attention', 'k', '2'],
  ['a mask of other dims', () => attention({ mask: tensor([2, 4]) }), 'SHAPE_MISMATCH', 'attention', 'mask', '[2, 4]'],
  ['a mask of another type', () => attention({ mask: new Tensor('int32', new Int32Array(4), [4]) }), 'UNSUPPORTED_DTYPE', 'attention', 'mask', 'int32'],
  ['a past of keys alone', () => attention({ pastKey: tensor([1, 2, 1, 6]) }), 'INVALID_ARGUMENT', 'attention', 'pastValue'],
  ['a length beyond the keys', () => attention({ nonpadKvSeqlen: new Tensor('int64', new BigInt64Array([5n]), [1]) }), 'OUT_OF_RANGE', 'nonpadKvSeqlen', '0 to 4', '5'],
  ['three axes without heads', () => w.attention(tensor([1, 3, 6]), tensor([1, 4, 6]), tensor([1, 4, 6]), { device }), 'INVALID_ARGUMENT', 'attention', 'qNumHeads'],
  ['positions beyond the table', () => w.rotaryEmbedding(tensor([1, 1, 2, 4]), tensor([3, 2]), tensor([3, 2]), { device, positionIds: new Tensor('int32', new Int32Array([0, 3]), [1, 2]) }), 'OUT_OF_RANGE', 'positionIds', '0 to 2', '3'],
  ['an odd number of rotated elements', () => w.rotaryEmbedding(tensor([1, 1, 2, 3]), tensor([1, 2, 1]), tensor([1, 2, 1]), { device }), 'SHAPE_MISMATCH', 'rotaryEmbedding', '3'],

  ['an unknown option', () => w.relu(f32(2), { device, colour: 1 }), 'INVALID_ARGUMENT', 'relu', 'colour'],
  ['a misspelt option', () => w.conv2d(tensor([1, 1, 3, 3]), tensor([1, 1, 2, 2]), { device, stride: [1, 1] }), 'INVALID_ARGUMENT', 'conv2d', 'stride', 'strides'],
  ['an option in wrong case', () => w.matmul(tensor([2, 2]), tensor([2, 2]), { device, transa: true }), 'INVALID_ARGUMENT', 'transa', 'transA'],
  ['a misspelt common option', () => w.relu(f32(2), { devise: 'cpu' }), 'INVALID_ARGUMENT', 'devise', 'device'],
  ['precision that does not exist', () => w.matmul(tensor([2, 2]), tensor([2, 2]), { device, precision: 'low' }), 'INVALID_ARGUMENT', 'precision', 'low', 'highest'],
  ['a signal that is none', () => w.relu(f32(2), { device, signal: {} }), 'INVALID_ARGUMENT', 'signal'],
  ['transfer that is no boolean', () => w.relu(f32(2), { device, transfer: 'yes' }), 'INVALID_ARGUMENT', 'transfer', 'yes'],

  ['a text for a boolean', () => w.matmul(tensor([2, 2]), tensor([2, 2]), { device, transA: 'no' }), 'INVALID_ARGUMENT', 'transA', 'no'],
  ['a text for a number', () => w.leakyRelu(f32(2), { device, alpha: '1' }), 'INVALID_ARGUMENT', 'alpha', '1'],
  ['a fraction for an integer', () => w.softmax(tensor([2, 2]), { device, axis: 0.5 }), 'INVALID_ARGUMENT', 'axis', '0.5'],
  ['NaN for an integer', () => w.softmax(tensor([2, 2]), { device, axis: NaN }), 'INVALID_ARGUMENT', 'axis', 'NaN'],
  ['a number for a list', () => w.conv2d(tensor([1, 1, 3, 3]), tensor([1, 1, 2, 2]), { device, strides: 2 }), 'INVALID_ARGUMENT', 'strides', '2'],
  ['a fraction in a list', () => w.conv2d(tensor([1, 1, 3, 3]), tensor([1, 1, 2, 2]), { device, strides: [1, 1.5] }), 'INVALID_ARGUMENT', 'strides', '1.5'],
  ['a word that is not offered', () => w.gelu(f32(2), { device, approximate: 'cubic' }), 'INVALID_ARGUMENT', 'approximate', 'cubic', 'tanh'],
  ['an unknown activation', () => w.matmul(tensor([2, 2]), tensor([2, 2]), { device, activation: 'swoosh' }), 'INVALID_ARGUMENT', 'activation', 'swoosh', 'relu'],
  ['an unknown even rule', () => w.median(tensor([2, 2]), { device, even: 'middle' }), 'INVALID_ARGUMENT', 'even', 'middle', 'upper'],
  ['an unknown nan rule', () => w.median(tensor([2, 2]), { device, nan: 'skip' }), 'INVALID_ARGUMENT', 'nan', 'skip', 'last'],
  ['an axis out of range', () => w.softmax(tensor([2, 2]), { device, axis: 2 }), ['INVALID_ARGUMENT', 'SHAPE_MISMATCH'], 'axis', '2'],
  ['a negative axis out of range', () => w.softmax(tensor([2, 2]), { device, axis: -3 }), ['INVALID_ARGUMENT', 'SHAPE_MISMATCH'], 'axis', '-3'],

  ['dims missing', () => w.matmul(f32(4), f32(4), { device }), ['INVALID_ARGUMENT', 'SHAPE_MISMATCH'], 'matmul', 'dims'],
  ['dims missing for pooling', () => w.maxPool2d(f32(4), { device, kernel: [2, 2] }), ['INVALID_ARGUMENT', 'SHAPE_MISMATCH'], 'maxPool2d'],
  ['too few dims', () => w.matmul(f32(4), f32(4), { device, dims: [[2, 2]] }), ['INVALID_ARGUMENT', 'SHAPE_MISMATCH'], 'matmul'],
  ['dims that are no list', () => w.relu(f32(4), { device, dims: 4 }), 'INVALID_ARGUMENT', 'dims', '4'],
  ['NaN in dims', () => w.relu(f32(4), { device, dims: [NaN] }), ['INVALID_ARGUMENT', 'SHAPE_MISMATCH'], 'dims', 'NaN'],
  ['a fraction in dims', () => w.relu(f32(4), { device, dims: [[1.5, 2]] }), ['INVALID_ARGUMENT', 'SHAPE_MISMATCH'], 'dims', '1.5'],
  ['a negative dim', () => w.relu(f32(4), { device, dims: [-4] }), ['INVALID_ARGUMENT', 'SHAPE_MISMATCH'], 'dims', '-4'],
  ['a text in dims', () => w.relu(f32(4), { device, dims: ['4'] }), ['INVALID_ARGUMENT', 'SHAPE_MISMATCH'], 'dims', '4'],
  ['dims of another size', () => w.relu(f32(4), { device, dims: [5] }), 'SHAPE_MISMATCH', 'relu', '5', '4'],
  ['dims whose product overflows', () => w.relu(f32(4), { device, dims: [2 ** 32, 2 ** 32, 2 ** 32] }), ['SHAPE_MISMATCH', 'INVALID_ARGUMENT'], 'relu'],
  ['dims whose product overflows to the right size', () => w.relu(f32(0), { device, dims: [2 ** 32, 2 ** 32] }), ['SHAPE_MISMATCH', 'INVALID_ARGUMENT'], 'relu'],
  ['dims given with a tensor that has others', () => w.relu(tensor([4]), { device, dims: [2, 3] }), ['SHAPE_MISMATCH', 'INVALID_ARGUMENT'], 'dims'],

  ['inner dimensions', () => w.matmul(tensor([2, 3]), tensor([4, 5]), { device }), 'SHAPE_MISMATCH', 'matmul', '[2, 3]', '[4, 5]'],
  ['inner dimensions, transposed', () => w.matmul(tensor([2, 3]), tensor([3, 5]), { device, transA: true }), 'SHAPE_MISMATCH', 'matmul'],
  ['batches that do not broadcast', () => w.matmul(tensor([2, 2, 2]), tensor([3, 2, 2]), { device }), 'SHAPE_MISMATCH', 'matmul'],
  ['a vector in a matrix product', () => w.matmul(tensor([2, 2]), tensor([2]), { device }), 'SHAPE_MISMATCH', 'matmul', 'rank 2', '[2]'],
  ['a scalar in a matrix product', () => w.matmul(tensor([]), tensor([2, 2]), { device }), 'SHAPE_MISMATCH', 'matmul'],
  ['a bias of another length', () => w.matmul(tensor([2, 3]), tensor([3, 5]), { device, bias: f32(4) }), ['SHAPE_MISMATCH', 'INVALID_ARGUMENT'], 'bias', '5', '4'],
  ['c that does not broadcast', () => w.matmul(tensor([2, 3]), tensor([3, 5]), { device, c: tensor([3, 5]) }), 'SHAPE_MISMATCH', 'c', '[3, 5]'],
  ['shapes that do not broadcast', () => w.add(tensor([2, 3]), tensor([2]), { device }), 'SHAPE_MISMATCH', 'add', '[2, 3]', '[2]'],
  ['arrays of two lengths', () => w.add(f32(3), f32(2), { device }), 'SHAPE_MISMATCH', 'add'],

  ['a convolution of the wrong rank', () => w.conv2d(tensor([3, 8, 8]), tensor([1, 3, 2, 2]), { device }), 'SHAPE_MISMATCH', 'conv2d', 'x', '4'],
  ['a kernel of the wrong rank', () => w.conv2d(tensor([1, 3, 8, 8]), tensor([3, 2, 2]), { device }), 'SHAPE_MISMATCH', 'conv2d', 'w', '4'],
  ['channels that differ', () => w.conv2d(tensor([1, 3, 8, 8]), tensor([4, 2, 3, 3]), { device }), 'SHAPE_MISMATCH', 'conv2d', '3', '2'],
  ['groups that do not divide', () => w.conv2d(tensor([1, 4, 8, 8]), tensor([5, 2, 3, 3]), { device, group: 2 }), ['SHAPE_MISMATCH', 'INVALID_ARGUMENT'], 'group'],
  ['no groups', () => w.conv2d(tensor([1, 4, 8, 8]), tensor([4, 4, 3, 3]), { device, group: 0 }), ['SHAPE_MISMATCH', 'INVALID_ARGUMENT'], 'group', '0'],
  ['a stride of 0', () => w.conv2d(tensor([1, 1, 8, 8]), tensor([1, 1, 3, 3]), { device, strides: [0, 1] }), ['SHAPE_MISMATCH', 'INVALID_ARGUMENT'], 'strides', '0'],
  ['a dilation of 0', () => w.conv2d(tensor([1, 1, 8, 8]), tensor([1, 1, 3, 3]), { device, dilations: [1, 0] }), ['SHAPE_MISMATCH', 'INVALID_ARGUMENT'], 'dilations', '0'],
  ['negative pads', () => w.conv2d(tensor([1, 1, 8, 8]), tensor([1, 1, 3, 3]), { device, pads: [-1, 0, 0, 0] }), ['SHAPE_MISMATCH', 'INVALID_ARGUMENT'], 'pads', '-1'],
  ['too few pads', () => w.conv2d(tensor([1, 1, 8, 8]), tensor([1, 1, 3, 3]), { device, pads: [1, 1] }), ['SHAPE_MISMATCH', 'INVALID_ARGUMENT'], 'pads', '4', '[1, 1]'],
  ['too many strides', () => w.conv2d(tensor([1, 1, 8, 8]), tensor([1, 1, 3, 3]), { device, strides: [1, 1, 1] }), ['SHAPE_MISMATCH', 'INVALID_ARGUMENT'], 'strides', '2', '[1, 1, 1]'],
  ['huge strides and pads', () => w.conv2d(tensor([1, 1, 8, 8]), tensor([1, 1, 3, 3]), { device, pads: [2 ** 52, 2 ** 52, 2 ** 52, 2 ** 52] }), ['SHAPE_MISMATCH', 'INVALID_ARGUMENT', 'OUT_OF_MEMORY'], 'conv2d'],
  ['an autoPad that does not exist', () => w.conv2d(tensor([1, 1, 8, 8]), tensor([1, 1, 3, 3]), { device, autoPad: 'SAME' }), 'INVALID_ARGUMENT', 'autoPad', 'SAME_UPPER'],
  ['autoPad and pads', () => w.conv2d(tensor([1, 1, 8, 8]), tensor([1, 1, 3, 3]), { device, autoPad: 'VALID', pads: [1, 1, 1, 1] }), ['INVALID_ARGUMENT', 'SHAPE_MISMATCH'], 'pads', 'autoPad'],
  ['a convolution bias of another length', () => w.conv2d(tensor([1, 1, 8, 8]), tensor([2, 1, 3, 3]), { device, bias: tensor([3]) }), 'SHAPE_MISMATCH', 'bias', '2', '3'],
  ['outputPads as large as the stride', () => w.convTranspose2d(tensor([1, 1, 4, 4]), tensor([1, 1, 3, 3]), { device, strides: [2, 2], outputPads: [2, 0] }), ['SHAPE_MISMATCH', 'INVALID_ARGUMENT'], 'outputPads', '2'],
  ['an outputShape of the wrong length', () => w.convTranspose2d(tensor([1, 1, 4, 4]), tensor([1, 1, 3, 3]), { device, outputShape: [9] }), ['SHAPE_MISMATCH', 'INVALID_ARGUMENT'], 'outputShape'],
  ['pooling without kernel', () => w.maxPool2d(tensor([1, 1, 4, 4]), { device }), 'INVALID_ARGUMENT', 'kernel'],
  ['a pooling kernel of 0', () => w.maxPool2d(tensor([1, 1, 4, 4]), { device, kernel: [0, 2] }), ['SHAPE_MISMATCH', 'INVALID_ARGUMENT'], 'kernel', '0'],
  ['pooling of the wrong rank', () => w.averagePool2d(tensor([4, 4]), { device, kernel: [2, 2] }), 'SHAPE_MISMATCH', 'averagePool2d', '4'],
  ['layerNorm scale of another shape', () => w.layerNorm(tensor([2, 3]), { device, scale: tensor([2]) }), 'SHAPE_MISMATCH', 'scale', '3', '2'],
  ['batchNorm operands of another length', () => w.batchNorm(tensor([1, 3, 2, 2]), tensor([3]), tensor([3]), tensor([2]), tensor([3]), { device }), 'SHAPE_MISMATCH', 'mean', '3', '2'],
  ['a median of a vector', () => w.median(tensor([4]), { device }), 'SHAPE_MISMATCH', 'median', '2'],
  ['a median of three dimensions', () => w.median(tensor([4, 2, 2]), { device }), 'SHAPE_MISMATCH', 'median', '2'],
];

for (const [name, call, codes, ...parts] of rows) {
  test(name, async () => {
    await rejects(call, codes, ...parts);
    const [y] = await w.relu(Float32Array.of(3), { device });
    assert.equal(y, 3, 'the next valid call works');
  });
}

test('unknown names and missing operands are refused by every op', async () => {
  for (const { name } of internal.opTable()) {
    await rejects(() => w[name](), 'INVALID_ARGUMENT', name);
    await rejects(() => w[name](f32(1), f32(1), f32(1), f32(1), f32(1), f32(1), f32(1)), ['INVALID_ARGUMENT', 'SHAPE_MISMATCH'], name);
  }
});

test('an error carries the stack of its caller', async () => {
  async function callerOfOurs() {
    return w.matmul(tensor([2, 3]), tensor([4, 5]), { device });
  }
  const error = await callerOfOurs().catch((e) => e);
  assert.match(error.stack, /callerOfOurs/);
  assert.match(error.stack, /32\.errors/);
});

test('a result too large for memory is refused', async () => {
  const a = new Tensor('float32', new Float32Array(2 ** 22), [2 ** 22, 1]);
  const b = new Tensor('float32', new Float32Array(2 ** 22), [1, 2 ** 22]);
  await rejects(() => w.matmul(a, b, { device }), ['OUT_OF_MEMORY', 'MEMORY_LIMIT']);
  assert.equal((await w.relu(Float32Array.of(3), { device }))[0], 3);
});

test('a detached array', async () => {
  const x = f32(4);
  structuredClone(x.buffer, { transfer: [x.buffer] });
  await rejects(() => w.relu(x, { device, dims: [4] }), ['INVALID_ARGUMENT', 'SHAPE_MISMATCH'], 'relu');
});

test('failing prints nothing', async () => {
  const result = await evaluate(`
    const codes = [];
    for (const call of [() => warpwright.relu(), () => warpwright.relu(new Float32Array(2), { device: 'cuda:77' }), () => warpwright.relu(new Float32Array(2), { devise: 1 })]) {
      codes.push(await call().catch((e) => e.code));
    }
    report(codes.length);`);
  assert.equal(result, 3);
});

