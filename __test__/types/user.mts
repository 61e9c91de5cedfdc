// A user's file: it must compile under `strict`; lines marked as errors must be errors.
import {
  Tensor, WarpwrightError, add, aggregate, allocPinned, argMax, averagePool2d, batchNorm, cast, clip, concat, conv1d, conv2d, conv3d, convTranspose2d, devices, evaluate, gelu,
  gather, globalAveragePool, gpuStatus, init, layerNorm, matmul, maxPool2d, median, memoryStats, and, bitShift, equal, less, pad, relu, softmax, split, transpose, trimMemory, where,
} from 'warpwright';
import type { AggregationReport, DeviceInfo } from 'warpwright';

export async function arrays(): Promise<void> {
  const single: Float32Array = await relu(new Float32Array([-1, 2]));
  const double: Float64Array = await relu(new Float64Array([-1, 2]), { device: 'cpu' });
  const product: Float32Array = await matmul(single, single, { dims: [[2, 1], [1, 2]], transA: false, alpha: 2, bias: new Float32Array(2), activation: 'relu' });
  const sum: Float64Array = await add(double, double);
  const soft: Float32Array = await softmax(product, { dims: [2, 2], axis: 1 });
  const middle: Float64Array = await median(sum, { dims: [2, 1], even: 'mean', nan: 'omit' });
  const bounded: Float32Array = await clip(soft, { min: 0, max: 1, signal: new AbortController().signal, transfer: true, precision: 'highest' });
  const smooth: Float32Array = await gelu(bounded, { approximate: 'tanh', dims: [[4]] });
  const bits: Uint16Array = await relu(new Uint16Array([0x3f80]), { type: 'bfloat16' });
  const long: Float32Array = await matmul(bits, bits, { type: 'bfloat16', outputType: 'float32', dims: [[1, 1], [1, 1]] });
  const affine: Float32Array = await evaluate('gelu(x * w + b)', { x: single, w: single, b: smooth }, { dims: { x: [2], b: [1] }, device: 'cpu' });
  const bytes: Uint8Array = await cast(long, { to: 'uint8' });
  const counts: Float64Array = await cast(new Int32Array([1, 2]), { to: 'float64' });
  const turned: Float32Array = await transpose(single, { dims: [2, 1], perm: [1, 0] });
  const joined: Float32Array = await concat([turned, single], { axis: 0 });
  const parts: Float32Array[] = await split(joined, { numOutputs: 2 });
  const longer: Uint8Array = await pad(bytes, { pads: [1, 1], mode: 'reflect' });
  const picked: Uint8Array = await gather(longer, new Int32Array([0, -1]));
  const best: BigInt64Array = await argMax(single, { selectLastIndex: true });
  const below: Uint8Array = await less(new BigInt64Array(2), new BigInt64Array([1n, -1n]));
  const both: Uint8Array = await and(below, await equal(single, single));
  const chosen: Float32Array = await where(both, single, single);
  const moved: Uint32Array = await bitShift(new Uint32Array([1]), new Uint32Array([4]), { direction: 'right' });
  console.log(both, chosen, moved);
  console.log(affine, smooth, middle, bytes, counts, parts, picked, best);

  // @ts-expect-error a list is wanted
  await concat(single, { axis: 0 });
  // @ts-expect-error floats are no indices
  await gather(single, single);

  // @ts-expect-error numbers are no condition
  await where(single, single, single);
  // @ts-expect-error floats have no bits to move
  await bitShift(single, single);

  // @ts-expect-error the type is missing
  await cast(long);
  // @ts-expect-error no forms for bits
  await median(bits, { type: 'bfloat16', dims: [1, 1] });

  // @ts-expect-error operands have names
  await evaluate('x', [single]);
  // @ts-expect-error shapes have the operands' names
  await evaluate('x', { x: single }, { dims: [[2]] });

  // @ts-expect-error a misspelt option
  await relu(single, { devise: 'cpu' });
  // @ts-expect-error no such rule
  await median(single, { dims: [2, 1], even: 'middle' });
  // @ts-expect-error a text is no operand
  await relu('abc');
  // @ts-expect-error the second operand is missing
  await add(single);
  // @ts-expect-error Float32Array in, Float32Array out
  const wrong: Float64Array = await relu(single);
  console.log(wrong);
}

export async function tensors(): Promise<Tensor> {
  const x = new Tensor('float32', new Float32Array(3 * 64), [1, 3, 8, 8]);
  const w = new Tensor(new Float32Array(4 * 27), [4, 3, 3, 3]);
  const hidden: Tensor = await conv2d(x, w, { pads: [1, 1, 1, 1], strides: [1, 1], dilations: [1, 1], group: 1, autoPad: 'NOTSET', activation: 'relu' });
  const pooled: Tensor = await maxPool2d(hidden, { kernel: [2, 2], strides: [2, 2], ceilMode: true });
  const averaged: Tensor = await averagePool2d(pooled, { kernel: [2, 2], countIncludePad: true });
  const up: Tensor = await convTranspose2d(averaged, w, { outputPads: [0, 0], outputShape: [8, 8] });
  await conv1d(x, w);
  await conv3d(x, w);
  const scale = new Tensor('float32', new Float32Array(3), [3]);
  await batchNorm(x, scale, scale, scale, scale, { epsilon: 1e-3 });
  await layerNorm(x, { axis: 1, epsilon: 1e-5, scale, bias: scale });
  await globalAveragePool(x);
  const moved: Tensor = await up.to('cuda:0');
  const data = await moved.getData();
  const facts: [string, readonly number[], number, string] = [moved.type, moved.dims, moved.size, moved.location];
  console.log(data.length, facts, x.data);
  moved.dispose();
  new Tensor('int64', [1n, 2n], [2]);
  new Tensor('int64', [1, 2], [2]);
  new Tensor('bool', Uint8Array.from([0, 1]), [2]);
  new Tensor('float16', Uint16Array.from([0x3c00]), []);
  const half: Tensor = await x.to('float16');
  await half.to({ type: 'bfloat16', device: 'cuda' });
  const whole: Tensor = await cast(half, { to: 'int32' });
  const wide: Tensor = await matmul(half, half, { outputType: 'float32', activation: 'geluTanh' });
  console.log(whole, wide);
  // @ts-expect-error no such type
  await x.to('float8');
  // @ts-expect-error no such type
  new Tensor('float31', new Float32Array(1), [1]);
  return pooled;
}

export async function aggregation(): Promise<void> {
  const rows = new Float32Array(12);
  const plain: Float32Array = await aggregate(rows, { rule: 'trimmedMean', f: 1, dims: [4, 3], nan: 'omit', pre: ['clipping', 'nnm'], clip: 2 });
  const { result, report }: { result: Float32Array; report: AggregationReport } = await aggregate([plain, plain], { rule: 'mean', report: true });
  const tensor: Tensor = await aggregate([new Tensor(rows), new Tensor(rows)], { rule: 'weightedMean', weights: [1, 2], device: 'cpu', report: false });
  await aggregate(rows, { rule: 'multiKrum', f: 1, m: 1, neighbours: 'n-f-1', dims: [4, 3], out: result, onProgress: (done: number) => console.log(done) });
  await aggregate(rows, { rule: 'centeredClipping', tau: 1, start: new Float32Array(3), iterations: 2, dims: [4, 3], signal: new AbortController().signal, transfer: true });
  console.log(report.chosen, tensor);
  // @ts-expect-error no such rule
  await aggregate(rows, { rule: 'krumm', dims: [4, 3] });
  // @ts-expect-error the rule is missing
  await aggregate(rows, { dims: [4, 3] });
  // @ts-expect-error no floats
  await aggregate(new Int32Array(4), { rule: 'mean', dims: [2, 2] });
}

export async function surroundings(): Promise<void> {
  await init();
  await init('cuda:0');
  const list: DeviceInfo[] = devices();
  const names: string[] = list.map((info) => `${info.id} ${info.kind} ${info.name} ${info.totalMemory} ${info.computeCapability ?? ''} ${info.freeMemory ?? 0}`);
  const status = gpuStatus();
  const why: string | undefined = status.available ? status.driverVersion : `${status.code}: ${status.reason}`;
  const pinned: Float32Array = allocPinned('float32', 1024);
  const whole: BigInt64Array = allocPinned('int64', 4);
  await memoryStats('cpu');
  await trimMemory();
  console.log(names, why, pinned, whole);
  try {
    await relu(new Float32Array(1), { device: 'cuda' });
  } catch (error) {
    if (error instanceof WarpwrightError) {
      const code: string = error.code;
      console.log(code, error.message);
    }
  }
}
