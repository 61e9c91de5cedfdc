import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Tensor, add, allocPinned, cast, neg, relu } from '../index.mjs';
import { device, location, requireDevice } from './helpers/device.mjs';
import { rejects, throws } from './helpers/errors.mjs';

const arrays = {
  float32: Float32Array, float64: Float64Array, float16: Uint16Array, bfloat16: Uint16Array, int64: BigInt64Array, int32: Int32Array, int16: Int16Array,
  int8: Int8Array, uint64: BigUint64Array, uint32: Uint32Array, uint16: Uint16Array, uint8: Uint8Array, bool: Uint8Array,
};
const Float16 = globalThis.Float16Array;
/** The class of results: numbers for float16 where the engine has an array for them, else bits. */
const classOf = (type) => (type === 'float16' && Float16 ? Float16 : arrays[type]);
const bytesOf = (array) => Buffer.from(array.buffer, array.byteOffset, array.byteLength);
const inferred = ['float32', 'float64', 'int64', 'int32', 'int16', 'int8', 'uint64', 'uint32', 'uint16', 'uint8'];

test(`the test device ${device} is there`, requireDevice);

test('type, data and dims, in both forms', () => {
  for (const [type, TypedArray] of Object.entries(arrays)) {
    const tensor = new Tensor(type, new TypedArray(6), [2, 3]);
    assert.equal(tensor.type, type);
    assert.deepEqual([...tensor.dims], [2, 3]);
    assert.equal(tensor.size, 6);
    assert.equal(tensor.location, 'cpu');
    assert.ok(tensor.data instanceof TypedArray, type);
    assert.equal(tensor.data.length, 6);
  }
  for (const type of inferred) assert.equal(new Tensor(new arrays[type](4), [4]).type, type);
});

test('dims left out are those of a vector', () => {
  assert.deepEqual([...new Tensor('float32', new Float32Array(5)).dims], [5]);
  assert.deepEqual([...new Tensor(new Float64Array(5)).dims], [5]);
});

test('0-d, empty and many dimensions', () => {
  assert.deepEqual([...new Tensor('float32', new Float32Array([7]), []).dims], []);
  assert.equal(new Tensor('float32', new Float32Array([7]), []).size, 1);
  assert.equal(new Tensor('float32', new Float32Array(0), [0]).size, 0);
  assert.equal(new Tensor('float32', new Float32Array(0), [3, 0, 2]).size, 0);
  assert.equal(new Tensor('float32', new Float32Array(1), [1, 1, 1, 1, 1, 1, 1, 1]).dims.length, 8);
});

test('plain lists of numbers', () => {
  assert.deepEqual([...new Tensor('float32', [1, 2.5, -3], [3]).data], [1, 2.5, -3]);
  assert.deepEqual([...new Tensor('float64', [0.1], [1]).data], [0.1]);
  assert.deepEqual([...new Tensor('int32', [1, -2], [2]).data], [1, -2]);
  assert.deepEqual([...new Tensor('bool', [true, false, 1, 0], [4]).data], [1, 0, 1, 0]);
});

test('int64 from bigints and safe integers, exactly', () => {
  const big = [9007199254740993n, -9223372036854775808n, 9223372036854775807n];
  assert.deepEqual([...new Tensor('int64', big, [3]).data], big);
  assert.deepEqual([...new Tensor('int64', [5, -7, Number.MAX_SAFE_INTEGER], [3]).data], [5n, -7n, 9007199254740991n]);
  assert.deepEqual([...new Tensor('int64', BigInt64Array.from(big), [3]).data], big);
  throws(() => new Tensor('int64', [1.5], [1]), 'INVALID_ARGUMENT', '1.5');
  throws(() => new Tensor('int64', [2 ** 53], [1]), 'INVALID_ARGUMENT', '9007199254740992');
  throws(() => new Tensor('int64', [2n ** 63n], [1]), 'INVALID_ARGUMENT');
  throws(() => new Tensor('int64', [NaN], [1]), 'INVALID_ARGUMENT', 'NaN');
});

test('bool holds 0 and 1', () => {
  assert.deepEqual([...new Tensor('bool', Uint8Array.from([0, 1, 1]), [3]).data], [0, 1, 1]);
  throws(() => new Tensor('bool', [2], [1]), 'INVALID_ARGUMENT', '2');
});

test('float16 and bfloat16 as bit patterns', async () => {
  const bits = Uint16Array.from([0x3c00, 0x7c00, 0xfe01, 0x8000, 0x0001]);
  for (const type of ['float16', 'bfloat16']) {
    const tensor = new Tensor(type, bits, [5]);
    assert.equal(await tensor.getData(), bits, 'a host tensor keeps its array');
    const moved = await tensor.to(location);
    const data = await moved.getData();
    assert.ok(data instanceof (moved.location === 'cpu' ? Uint16Array : classOf(type)), type);
    assert.deepEqual(bytesOf(data), bytesOf(bits));
  }
});

test('plain numbers become the nearest of 16 bits', () => {
  const numbers = [1, -2.5, 1 / 3, 65504, 65520, 1e-8, 2 ** -24, NaN, -Infinity, 2049, 2051];
  const bitsOf = (type) => [...new Uint16Array(new Tensor(type, numbers).data.buffer)];
  assert.deepEqual(bitsOf('float16'), [0x3c00, 0xc100, 0x3555, 0x7bff, 0x7c00, 0, 1, 0x7e00, 0xfc00, 0x6800, 0x6802]);
  assert.deepEqual(bitsOf('bfloat16').slice(0, 4), [0x3f80, 0xc020, 0x3eab, 0x4780]);
});

test('Float16Array where the engine has it', { skip: !Float16 && 'this engine has none' }, async () => {
  const numbers = Float16.from([1, -2.5]);
  assert.equal(new Tensor('float16', numbers, [2]).data, numbers);
  assert.equal(new Tensor(numbers).type, 'float16');
  assert.ok(new Tensor('float16', [1, 2]).data instanceof Float16);
  const y = await neg(numbers, { device });
  assert.ok(y instanceof Float16);
  assert.deepEqual([...y], [-1, 2.5]);
  const tensor = await neg(new Tensor(numbers), { device });
  assert.deepEqual([...tensor.data], [-1, 2.5]);
  const pinned = allocPinned('float16', 2);
  await (await new Tensor(numbers).to(location)).getData({ into: pinned });
  assert.deepEqual([...pinned], [1, -2.5]);
});

test('arrays of bits with their type named', async () => {
  const bits = Uint16Array.of(0x3f80, 0xc000, 0);
  const y = await neg(bits, { type: 'bfloat16', device });
  assert.ok(y instanceof Uint16Array);
  assert.deepEqual([...y], [0xbf80, 0x4000, 0x8000]);
  const halves = await neg(Uint16Array.of(0x3c00), { type: 'float16', device });
  assert.ok(halves instanceof Uint16Array, 'bits in, bits out');
  assert.deepEqual([...halves], [0xbc00]);
  assert.deepEqual([...await add(bits, bits, { type: 'bfloat16', device })], [0x4000, 0xc080, 0]);
  assert.deepEqual([...await cast(Uint8Array.of(0, 7), { type: 'bool', to: 'float32', device })], [0, 1]);
  await rejects(() => neg(bits, { device }), 'UNSUPPORTED_DTYPE', 'neg', 'uint16', 'bfloat16');
  await rejects(() => neg(bits, { type: 'float32', device }), 'INVALID_ARGUMENT', 'neg', 'Float32Array', 'Uint16Array');
  await rejects(() => neg(bits, { type: 'float8', device }), 'UNSUPPORTED_DTYPE', 'float8', 'float16');
});

test('to an element type, on a device or from one to another', async () => {
  const numbers = [1.5, -2, 1 / 3, 70000, NaN];
  const single = new Tensor('float32', numbers, [5, 1]);
  for (const start of ['cpu', location]) {
    for (const end of ['cpu', location]) {
      const here = await single.to(start);
      const half = await here.to({ type: 'float16', device: end });
      assert.equal(half.type, 'float16');
      assert.equal(half.location, end);
      assert.deepEqual([...half.dims], [5, 1]);
      const bits = bytesOf(await half.getData());
      assert.deepEqual([0, 2, 4, 6].map((at) => bits.readUInt16LE(at)), [0x3e00, 0xc000, 0x3555, 0x7c00]);
      assert.ok((bits.readUInt16LE(8) & 0x7fff) > 0x7c00, 'NaN stays NaN');
      const back = await (await half.to('float64')).to('cpu');
      assert.deepEqual([...back.data], [1.5, -2, 0.333251953125, Infinity, NaN]);
    }
  }
  assert.equal(single.location, 'cpu');
  assert.deepEqual([...(await single.to('int8')).data], [1, -2, 0, 127, 0]);
  assert.equal((await single.to('float32')).data, single.data, 'nothing changes');
  assert.equal((await single.to({})).data, single.data);
});

test('to: what it refuses, and an array taken over', async () => {
  const tensor = new Tensor('float32', [1, 2]);
  await rejects(() => tensor.to('float8'), 'DEVICE_NOT_FOUND', 'float8');
  await rejects(() => tensor.to({ type: 'float8' }), 'UNSUPPORTED_DTYPE', 'float8');
  await rejects(() => tensor.to({ device: 5 }), 'INVALID_ARGUMENT', '5');
  await rejects(() => tensor.to({ dtype: 'float16' }), 'INVALID_ARGUMENT', 'dtype', 'type, device');
  await rejects(() => tensor.to(5), 'INVALID_ARGUMENT', '5');
  const moved = await tensor.to('float64', { transfer: true });
  assert.deepEqual([...moved.data], [1, 2]);
  throws(() => tensor.data, 'DISPOSED');
});

test('whole numbers of 64 bits convert exactly', async () => {
  const big = new Tensor('int64', [2n ** 53n + 1n, -(2n ** 63n), 2n ** 63n - 1n, (1n << 62n) + (1n << 54n) + 1n]);
  const to = async (type) => (await (await (await big.to(location)).to(type)).getData());
  assert.deepEqual([...await to('uint64')], [2n ** 53n + 1n, 2n ** 63n, 2n ** 63n - 1n, (1n << 62n) + (1n << 54n) + 1n]);
  assert.deepEqual([...await to('int32')], [1, 0, -1, 1]);
  assert.deepEqual([...await to('float64')], [2 ** 53, -(2 ** 63), 2 ** 63, 2 ** 62 + 2 ** 54]);
  assert.deepEqual([...await to('bfloat16')], [0x5a00, 0xdf00, 0x5f00, 0x5e81], 'rounded once, not by way of a float');
});

test('wrong types', () => {
  throws(() => new Tensor('float31', new Float32Array(1), [1]), ['INVALID_ARGUMENT', 'UNSUPPORTED_DTYPE'], 'float31');
  throws(() => new Tensor('float32', new Float64Array(1), [1]), ['INVALID_ARGUMENT', 'UNSUPPORTED_DTYPE'], 'Float32Array', 'Float64Array');
  throws(() => new Tensor('float64', new Float32Array(1), [1]), ['INVALID_ARGUMENT', 'UNSUPPORTED_DTYPE']);
  for (const data of [undefined, null, 5, {}, 'abc', new ArrayBuffer(4), new DataView(new ArrayBuffer(4)), ['a'], [undefined]]) {
    throws(() => new Tensor('float32', data, [1]), ['INVALID_ARGUMENT', 'UNSUPPORTED_DTYPE', 'SHAPE_MISMATCH']);
  }
  throws(() => new Tensor(), ['INVALID_ARGUMENT', 'UNSUPPORTED_DTYPE']);
  assert.throws(() => Tensor('float32', new Float32Array(1), [1]), TypeError);
});

test('dims are checked', () => {
  const four = new Float32Array(4);
  for (const dims of [[NaN], [1.5], [-4], [Infinity], ['4'], [null], [4n], '4', 4, {}, [[4]]]) {
    throws(() => new Tensor('float32', four, dims), ['INVALID_ARGUMENT', 'SHAPE_MISMATCH'], 'dims');
  }
  throws(() => new Tensor('float32', four, [5]), 'SHAPE_MISMATCH', '5', '4');
  throws(() => new Tensor('float32', four, [2, 3]), 'SHAPE_MISMATCH', '6', '4');
  throws(() => new Tensor('float32', four, []), 'SHAPE_MISMATCH');
  throws(() => new Tensor('float32', four, [2 ** 32, 2 ** 32]), ['SHAPE_MISMATCH', 'INVALID_ARGUMENT']);
  throws(() => new Tensor('float32', four, [2 ** 31, 2 ** 31, 4]), ['SHAPE_MISMATCH', 'INVALID_ARGUMENT']);
  throws(() => new Tensor('float32', four, [2 ** 53, 2]), ['SHAPE_MISMATCH', 'INVALID_ARGUMENT']);
  assert.equal(new Tensor('float32', four, [4]).size, 4);
});

test('dims that the caller changes later do not matter', async () => {
  const dims = [2, 3];
  const tensor = new Tensor('float32', new Float32Array(6), dims);
  dims[0] = 100;
  assert.deepEqual([...tensor.dims], [2, 3]);
  try {
    tensor.dims[0] = 100;
  } catch {
    // Frozen dims are as good.
  }
  assert.equal((await relu(tensor, { device })).size, 6);
});

test('dims that are assigned reshape in place', async () => {
  const values = Float32Array.from({ length: 6 }, (_, i) => i - 3);
  const tensor = await new Tensor('float32', values, [2, 3]).to(location);
  const kept = tensor.reshape([6]);
  const dims = [1, 3, 2];
  tensor.dims = dims;
  dims[0] = 9;
  assert.deepEqual([[...tensor.dims], [...kept.dims], tensor.location], [[1, 3, 2], [6], location]);
  assert.deepEqual([...(await relu(tensor, { device })).dims], [1, 3, 2]);
  assert.deepEqual([...await tensor.getData()], [...values]);
  assert.deepEqual([...await kept.getData()], [...values]);
  for (const wrong of [[7], [1.5, 4], '6', undefined]) throws(() => (tensor.dims = wrong), ['SHAPE_MISMATCH', 'INVALID_ARGUMENT'], 'dims');
  assert.deepEqual([...tensor.dims], [1, 3, 2]);
  tensor.dispose();
  throws(() => (tensor.dims = [6]), 'DISPOSED');
  assert.deepEqual([...await kept.getData()], [...values]);
});

test('data, getData and to agree', async () => {
  const values = Float32Array.from({ length: 12 }, (_, i) => i - 6);
  const tensor = new Tensor('float32', values.subarray(1, 7), [2, 3]);
  assert.deepEqual([...tensor.data], [-5, -4, -3, -2, -1, 0]);
  assert.deepEqual([...await tensor.getData()], [...tensor.data]);
  const there = await tensor.to(location);
  assert.equal(there.location, location);
  const back = await there.to('cpu');
  assert.deepEqual([...back.data], [...tensor.data]);
  assert.deepEqual([...back.dims], [2, 3]);
});

test('every type survives the way to the device and back', async () => {
  for (const [type, TypedArray] of Object.entries(arrays)) {
    const bytes = Uint8Array.from({ length: 40 }, (_, i) => (type === 'bool' ? i % 2 : i * 37));
    const data = new TypedArray(bytes.buffer);
    const back = await (await new Tensor(type, data, [data.length]).to(location)).to('cpu');
    assert.equal(back.type, type);
    assert.deepEqual(Buffer.from(back.data.buffer, back.data.byteOffset, back.data.byteLength), Buffer.from(bytes), type);
  }
});

test('a disposed tensor', async () => {
  const tensor = new Tensor('float32', new Float32Array(3), [3]);
  tensor.dispose();
  tensor.dispose();
  throws(() => tensor.data, 'DISPOSED');
  await rejects(() => tensor.getData(), 'DISPOSED');
  await rejects(() => tensor.to('cpu'), 'DISPOSED');
  await rejects(() => relu(tensor, { device }), 'DISPOSED', 'relu');
  await rejects(() => add(new Tensor('float32', new Float32Array(3), [3]), tensor, { device }), 'DISPOSED');
  assert.deepEqual([...tensor.dims], [3]);
  assert.equal((await relu(new Float32Array([1]), { device }))[0], 1);
});

test('Symbol.dispose disposes', { skip: !Symbol.dispose && 'this engine has none' }, () => {
  const tensor = new Tensor('float32', new Float32Array(3), [3]);
  tensor[Symbol.dispose]();
  throws(() => tensor.data, 'DISPOSED');
});

test('dispose during a run lets it finish or rejects it', async () => {
  for (let round = 0; round < 20; round++) {
    const tensor = await new Tensor('float32', new Float32Array(100_000).fill(round), [100_000]).to(location);
    const promise = neg(tensor, { device });
    tensor.dispose();
    try {
      const result = await promise;
      assert.equal((await result.getData())[99_999], round === 0 ? -0 : -round);
      result.dispose();
    } catch (error) {
      assert.equal(error.code, 'DISPOSED', error.stack);
    }
  }
});

test('a typed array beside a tensor gives a tensor', async () => {
  const y = await add(Float32Array.of(1, 2), new Tensor('float32', Float32Array.of(3, 4), [2]), { device });
  assert.deepEqual([...await y.getData()], [4, 6]);
});

test('disposing a result leaves its input alone', async () => {
  const tensor = await new Tensor('float32', Float32Array.from([1, 2]), [2]).to(location);
  const copy = await tensor.to(location);
  copy.dispose();
  assert.deepEqual([...await tensor.getData()], [1, 2]);
});

test('two tensors over one array', async () => {
  const data = Float32Array.from([1, 2, 3, 4]);
  const first = new Tensor('float32', data, [4]);
  const second = new Tensor('float32', data, [2, 2]);
  first.dispose();
  assert.deepEqual([...(await neg(second, { device })).data], [-1, -2, -3, -4]);
});

test('allocPinned gives typed arrays', async () => {
  for (const type of Object.keys(arrays)) {
    const array = allocPinned(type, 10);
    assert.ok(array instanceof classOf(type), type);
    assert.equal(array.length, 10);
    assert.ok(array.every((value) => value === array[0] && Number(value) === 0), 'starts as zeros');
  }
  assert.equal(allocPinned('float32', 0).length, 0);
  const array = allocPinned('float32', 5);
  array.set([-1, 2, -3, 4, -5]);
  assert.deepEqual([...await relu(array, { device })], [0, 2, 0, 4, 0]);
  assert.deepEqual([...await neg(array.subarray(1, 4), { device })], [-2, 3, -4]);
});

test('pinned memory cannot be transferred', () => {
  const array = allocPinned('float32', 8);
  const attempts = [() => structuredClone(array.buffer, { transfer: [array.buffer] }), () => array.buffer.transfer?.()];
  for (const attempt of attempts) {
    try {
      attempt();
    } catch {
      // Some engines refuse, others copy instead; what counts is that the array stays.
    }
  }
  assert.equal(array.length, 8);
  array[7] = 1;
  assert.equal(array[7], 1);
});

test('allocPinned refuses bad lengths and types', () => {
  for (const length of [-1, 1.5, NaN, Infinity, '4', null, undefined, 2 ** 60]) {
    throws(() => allocPinned('float32', length), ['INVALID_ARGUMENT', 'OUT_OF_MEMORY', 'SHAPE_MISMATCH']);
  }
  throws(() => allocPinned('float31', 4), ['INVALID_ARGUMENT', 'UNSUPPORTED_DTYPE'], 'float31');
  assert.equal(allocPinned('float32', 4).length, 4);
});

test('changing a pinned array during a run never crashes', async () => {
  const array = allocPinned('float32', 1 << 20);
  const promise = neg(array, { device });
  for (let i = 0; i < array.length; i += 64) array[i] = i;
  assert.equal((await promise).length, array.length);
});
