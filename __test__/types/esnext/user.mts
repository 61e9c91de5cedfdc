// A user's file with a library that knows Float16Array: it must compile under `strict`.
import { Tensor, allocPinned, cast, matmul, relu } from 'warpwright';

export async function halves(): Promise<Tensor> {
  const numbers = new Float16Array([1, 2.5]);
  const positive: Float16Array = await relu(numbers);
  const bits: Float16Array | Uint16Array = await cast(new Float32Array(2), { to: 'float16' });
  const pinned: Float16Array | Uint16Array = allocPinned('float16', 4);
  const product: Float32Array = await matmul(positive, positive, { dims: [[1, 2], [2, 1]], outputType: 'float32' });
  console.log(bits, pinned, product);
  // @ts-expect-error numbers in, numbers out
  const wrong: Uint16Array = await relu(numbers);
  console.log(wrong);
  return new Tensor('float16', numbers, [2, 1]);
}
