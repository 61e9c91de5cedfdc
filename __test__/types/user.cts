// The same package from CommonJS.
import warpwright = require('warpwright');

export async function run(): Promise<Float32Array> {
  const tensor: warpwright.Tensor = new warpwright.Tensor('float32', new Float32Array(4), [2, 2]);
  const product: warpwright.Tensor = await warpwright.matmul(tensor, tensor);
  console.log(product.dims, warpwright.devices().length);
  // @ts-expect-error no such op
  await warpwright.matmull(tensor, tensor);
  return warpwright.relu(new Float32Array([-1, 1]));
}
