/**
 * Writes GGUF version 3 files, little endian (ggml/docs/gguf.md).
 *
 * Tensors are given as streams of chunks and go to the disk one chunk at a time, so a file may be larger than memory.
 */
import { closeSync, openSync, writeSync } from 'node:fs';
import { encode, encodedBytes, type TensorType } from './encode.js';

export type MetadataValue =
  | { type: 'string'; value: string }
  | { type: 'uint32'; value: number }
  | { type: 'float32'; value: number }
  | { type: 'bool'; value: boolean }
  | { type: 'strings'; value: readonly string[] }
  | { type: 'int32s'; value: readonly number[] };

export type Metadata = ReadonlyMap<string, MetadataValue>;

export interface Tensor {
  name: string;
  /** Dimensions in ggml's order: the length of a row comes first. */
  shape: readonly number[];
  type: TensorType;
  /** The values, row after row; each chunk a multiple of 32 long where the type is Q8_0. */
  chunks(): Iterable<Float32Array>;
}

const ALIGNMENT = 32;
const TYPE_CODE = { uint32: 4, int32: 5, float32: 6, bool: 7, string: 8, array: 9 } as const;
const TENSOR_CODE: Record<TensorType, number> = { F32: 0, F16: 1, Q8_0: 8 };

export const text = (value: string): MetadataValue => ({ type: 'string', value });
export const integer = (value: number): MetadataValue => ({ type: 'uint32', value });
export const decimal = (value: number): MetadataValue => ({ type: 'float32', value });
export const truth = (value: boolean): MetadataValue => ({ type: 'bool', value });

/** Returns the size of the file in bytes. */
export function writeGguf(path: string, metadata: Metadata, tensors: readonly Tensor[]): number {
  const file = openSync(path, 'w');
  let size = 0;
  const put = (bytes: Uint8Array): void => {
    for (let done = 0; done < bytes.length; ) done += writeSync(file, bytes, done);
    size += bytes.length;
  };
  try {
    put(header(metadata, tensors));
    put(padding(size));
    for (const tensor of tensors) {
      const start = size;
      for (const chunk of tensor.chunks()) put(encode(chunk, tensor.type));
      if (size - start !== tensorBytes(tensor)) throw new Error(`${tensor.name}: the chunks do not fill the shape`);
      put(padding(size));
    }
  } finally {
    closeSync(file);
  }
  return size;
}

function tensorBytes(tensor: Tensor): number {
  return encodedBytes(
    tensor.shape.reduce((product, length) => product * length, 1),
    tensor.type,
  );
}

function padding(size: number): Uint8Array {
  return new Uint8Array((ALIGNMENT - (size % ALIGNMENT)) % ALIGNMENT);
}

function header(metadata: Metadata, tensors: readonly Tensor[]): Uint8Array {
  const parts = [Buffer.from('GGUF'), uint32(3), uint64(tensors.length), uint64(metadata.size)];
  for (const [key, entry] of metadata) parts.push(string(key), value(entry));
  let offset = 0;
  for (const tensor of tensors) {
    parts.push(string(tensor.name), uint32(tensor.shape.length), ...tensor.shape.map(uint64));
    parts.push(uint32(TENSOR_CODE[tensor.type]), uint64(offset));
    offset += Math.ceil(tensorBytes(tensor) / ALIGNMENT) * ALIGNMENT;
  }
  return Buffer.concat(parts);
}

function value(entry: MetadataValue): Buffer {
  switch (entry.type) {
    case 'string':
      return Buffer.concat([uint32(TYPE_CODE.string), string(entry.value)]);
    case 'uint32':
      return Buffer.concat([uint32(TYPE_CODE.uint32), uint32(entry.value)]);
    case 'float32':
      return Buffer.concat([uint32(TYPE_CODE.float32), float32(entry.value)]);
    case 'bool':
      return Buffer.concat([uint32(TYPE_CODE.bool), Buffer.from([entry.value ? 1 : 0])]);
    case 'strings':
      return array(TYPE_CODE.string, entry.value.map(string));
    case 'int32s':
      return array(TYPE_CODE.int32, entry.value.map(int32));
    default:
      return entry satisfies never;
  }
}

function array(elementCode: number, elements: Buffer[]): Buffer {
  return Buffer.concat([uint32(TYPE_CODE.array), uint32(elementCode), uint64(elements.length), ...elements]);
}

function string(value: string): Buffer {
  const bytes = Buffer.from(value, 'utf8');
  return Buffer.concat([uint64(bytes.length), bytes]);
}

function number(size: number, write: (buffer: Buffer) => void): Buffer {
  const buffer = Buffer.alloc(size);
  write(buffer);
  return buffer;
}

const uint32 = (value: number): Buffer => number(4, (buffer) => buffer.writeUInt32LE(value));
const int32 = (value: number): Buffer => number(4, (buffer) => buffer.writeInt32LE(value));
const uint64 = (value: number): Buffer => number(8, (buffer) => buffer.writeBigUInt64LE(BigInt(value)));
const float32 = (value: number): Buffer => number(4, (buffer) => buffer.writeFloatLE(value));
