import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Tensor, add, allocPinned, neg, relu } from '../index.mjs';
import { device, location, requireDevice } from './helpers/device.mjs';
import { rejects, throws } from './helpers/errors.mjs';

const arrays = {
  float32: Float32Array, float64: Float64Array, float16: Uint16Array, bfloat16: Uint16Array, int64: BigInt64Array, int32: Int32Array, int16: Int16Array,
  int8: Int8Array, uint64: BigUint64Array, uint32: Uint32Array, uint16: Uint16Array, uint8: Uint8Array, bool: Uint8Array,
};
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
    assert.deepEqual([...await tensor.getData()].map(Number), [...bits]);
    const moved = await tensor.to(location);
    assert.deepEqual([...await moved.getData()].map(Number), [...bits]);
  }
});

test('Float16Array where the engine has it', { skip: typeof Float16Array === 'undefined' && 'this engine has none' }, () => {
  // eslint-disable-next-line no-undef
  const tensor = new Tensor('float16', Float16Array.from([1, 2.5]), [2]);
  assert.equal(tensor.type, 'float16');
  // eslint-disable-next-line no-undef
  assert.equal(new Tensor(Float16Array.from([1]), [1]).type, 'float16');
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
  for (const [type, TypedArray] of Object.entries(arrays)) {
    const array = allocPinned(type, 10);
    assert.ok(array instanceof TypedArray, type);
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
