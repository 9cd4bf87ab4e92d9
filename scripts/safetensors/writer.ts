/** Writes safetensors files with random weights: a JSON header, then the tensors. */
import { writeFileSync } from 'node:fs';
import { toHalf } from '../gguf/encode.js';

export interface RandomTensor {
  readonly name: string;
  readonly shape: readonly number[];
  /** Standard deviation of the weights. Null: all weights are one. */
  readonly scale: number | null;
}

/** Weights are slices of a pool of this many numbers, at a different offset per tensor. */
const POOL = 1 << 16;
const STRIDE = 7;

/** Vectors are written as 32-bit floats, other tensors as 16-bit floats. Deterministic for a seed. */
export function writeRandomTensors(path: string, tensors: readonly RandomTensor[], seed: number): void {
  const next = uniform(seed);
  const normal = Float32Array.from({ length: POOL }, () => Math.sqrt(-2 * Math.log(next() + 1e-12)) * Math.cos(2 * Math.PI * next()));
  const header: Record<string, unknown> = {};
  const bodies: Buffer[] = [];
  let offset = 0;
  for (const { name, shape, scale } of tensors) {
    const isHalf = shape.length > 1;
    const count = shape.reduce((product, size) => product * size, 1);
    const start = Math.floor(next() * POOL);
    const at = (index: number): number => (start + index * STRIDE + (index >>> 16)) % POOL;
    const values = scale === null ? null : normal.map((value) => value * scale);
    const halves = isHalf ? Uint16Array.from(values ?? [1], toHalf) : null;
    const data =
      halves === null
        ? Float32Array.from({ length: count }, (_, index) => values?.[at(index)] ?? 1)
        : fill(new Uint16Array(count), (index) => halves[values === null ? 0 : at(index)] as number);
    const body = Buffer.from(data.buffer);
    header[name] = { dtype: isHalf ? 'F16' : 'F32', shape, data_offsets: [offset, offset + body.length] };
    bodies.push(body);
    offset += body.length;
  }
  const text = Buffer.from(JSON.stringify(header));
  const padded = Buffer.concat([text, Buffer.alloc((8 - (text.length % 8)) % 8, ' ')]);
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(padded.length));
  writeFileSync(path, Buffer.concat([length, padded, ...bodies]));
}

function fill(target: Uint16Array, value: (index: number) => number): Uint16Array {
  for (let index = 0; index < target.length; index++) target[index] = value(index);
  return target;
}

function uniform(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
