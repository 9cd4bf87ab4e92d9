/** Tensors in the number types of ONNX graphs: 32-bit and 16-bit floats, 32-bit and 64-bit integers. */
import { Tensor } from 'onnxruntime-node';

/** Float tensor of the given type. Throws an Error for other types. */
export function floats(type: string, values: Float32Array, shape: readonly number[]): Tensor {
  if (type === 'float32') return new Tensor('float32', values, shape);
  if (type === 'float16') return new Tensor('float16', Uint16Array.from(values, halfOf), shape);
  throw new Error(`the model takes numbers of type ${type}, which is not supported`);
}

/** Integer tensor, or a float tensor for a float input. */
export function wholes(type: string, values: readonly number[], shape: readonly number[]): Tensor {
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
      return floats(type, Float32Array.from(values), shape);
  }
}

/** Floats of an output. Throws an Error for other types. */
export function floatsOf(tensor: Tensor): Float32Array {
  const { data } = tensor;
  if (tensor.type === 'float32' && data instanceof Float32Array) return data;
  // Node 24 and later provide Float16Array, which reads as numbers.
  if (tensor.type === 'float16')
    return data instanceof Uint16Array ? Float32Array.from(data, ofHalf) : Float32Array.from(data as ArrayLike<number>);
  throw new Error(`the model gives numbers of type ${tensor.type}, which is not supported`);
}

// Half-precision floats (IEEE 754 binary16), which many models use and Node 20 lacks.
const word = new Uint32Array(1);
const single = new Float32Array(word.buffer);

/** IEEE 754 binary16, rounded to nearest, ties to even. */
export function halfOf(value: number): number {
  single[0] = value;
  const bits = word[0] as number;
  const sign = (bits >>> 16) & 0x8000;
  const magnitude = bits & 0x7fff_ffff;
  if (magnitude > 0x7f80_0000) return sign | 0x7e00;
  if (magnitude >= 0x477f_f000) return sign | 0x7c00;
  if (magnitude >= 0x3880_0000) return sign | ((magnitude - 0x3800_0000 + 0xfff + ((magnitude >>> 13) & 1)) >>> 13);
  // Below the smallest normal number: in units of 2^-24.
  const scaled = Math.abs(single[0] as number) * 2 ** 24;
  const floor = Math.floor(scaled);
  const rest = scaled - floor;
  return sign | (floor + (rest > 0.5 || (rest === 0.5 && floor % 2 === 1) ? 1 : 0));
}

/** The number represented by 16 bits. */
export function ofHalf(bits: number): number {
  const sign = (bits & 0x8000) === 0 ? 1 : -1;
  const exponent = (bits >>> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}
