/** Converts numbers to tensors of the types that ONNX graphs take, and back. */
import { Tensor } from 'onnxruntime-node';
import { fromHalf, toHalf } from './half-float.js';

/** Float tensor of the given type. Throws an Error for other types. */
export function floatTensor(type: string, values: Float32Array, shape: readonly number[]): Tensor {
  if (type === 'float32') return new Tensor('float32', values, shape);
  if (type === 'float16') return new Tensor('float16', Uint16Array.from(values, toHalf), shape);
  throw new Error(`the model takes numbers of type ${type}, which is not supported`);
}

/** Tensor of integers, in the given type: int64, int32, or a float type. Throws an Error for other types. */
export function integerTensor(type: string, values: readonly number[], shape: readonly number[]): Tensor {
  switch (type) {
    case 'int64':
      return new Tensor(
        'int64',
        BigInt64Array.from(values, (value) => BigInt(Math.round(value))),
        shape,
      );
    case 'int32':
      return new Tensor('int32', Int32Array.from(values, Math.round), shape);
    default:
      return floatTensor(type, Float32Array.from(values), shape);
  }
}

/** Values of a float output. Throws an Error for other types. */
export function floatsOf(tensor: Tensor): Float32Array {
  const { data } = tensor;
  if (tensor.type === 'float32' && data instanceof Float32Array) return data;
  // A Float16Array, on newer versions of Node, already reads as numbers.
  if (tensor.type === 'float16')
    return data instanceof Uint16Array ? Float32Array.from(data, fromHalf) : Float32Array.from(data as ArrayLike<number>);
  throw new Error(`the model gives numbers of type ${tensor.type}, which is not supported`);
}
