/**
 * Encodes 32-bit floats as the tensor types of ggml: F32, F16 and Q8_0.
 *
 * Q8_0 stores blocks of 32 weights as one 16-bit scale and 32 signed bytes (ggml's `block_q8_0`).
 */
export type TensorType = 'F32' | 'F16' | 'Q8_0';

export const BLOCK = 32;
const Q8_0_BLOCK_BYTES = 34;

export function encodedBytes(count: number, type: TensorType): number {
  switch (type) {
    case 'F32':
      return count * 4;
    case 'F16':
      return count * 2;
    case 'Q8_0':
      return (count / BLOCK) * Q8_0_BLOCK_BYTES;
    default:
      return type satisfies never;
  }
}

/** The length must be a multiple of 32 for Q8_0. */
export function encode(values: Float32Array, type: TensorType): Uint8Array {
  switch (type) {
    case 'F32':
      return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
    case 'F16':
      return new Uint8Array(Uint16Array.from(values, toHalf).buffer);
    case 'Q8_0':
      return encodeQ8(values);
    default:
      return type satisfies never;
  }
}

function encodeQ8(values: Float32Array): Uint8Array {
  const bytes = Buffer.alloc(encodedBytes(values.length, 'Q8_0'));
  for (let start = 0, at = 0; start < values.length; start += BLOCK, at += Q8_0_BLOCK_BYTES) {
    const block = values.subarray(start, start + BLOCK);
    let largest = 0;
    for (const value of block) largest = Math.max(largest, Math.abs(value));
    const scale = largest / 127;
    bytes.writeUInt16LE(toHalf(scale), at);
    if (scale === 0) continue;
    for (const [index, value] of block.entries()) bytes.writeInt8(Math.round(value / scale), at + 2 + index);
  }
  return bytes;
}

const float = new Float32Array(1);
const bits = new Uint32Array(float.buffer);

/** IEEE 754 binary16, rounded to nearest; too large a value becomes infinity. */
export function toHalf(value: number): number {
  float[0] = value;
  const single = bits[0] ?? 0;
  const sign = (single >>> 16) & 0x8000;
  const exponent = ((single >>> 23) & 0xff) - 112;
  const mantissa = single & 0x7fffff;
  if (exponent >= 31) return sign | 0x7c00;
  if (exponent > 0) return sign | ((exponent << 10) + ((mantissa + 0x1000) >> 13));
  if (exponent < -10) return sign;
  const shift = 14 - exponent;
  return sign | (((mantissa | 0x800000) + (1 << (shift - 1))) >> shift);
}
