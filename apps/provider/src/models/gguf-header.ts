/**
 * `readGgufHeader` reads the metadata of a GGUF file, and rejects damaged or truncated files before llama.cpp reads them.
 *
 * Format: ggml's docs/gguf.md, versions 2 and 3.
 */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { tensorBytes } from './ggml-types.js';

/** A file is not a usable model. The message is a sentence for the Mac's owner. */
export class ModelFileError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ModelFileError';
  }
}

type GgufScalar = string | number | bigint | boolean;

export interface GgufHeader {
  readonly values: ReadonlyMap<string, GgufScalar>;
  /** Lengths of arrays by key. Their content is skipped. */
  readonly arrayLengths: ReadonlyMap<string, number>;
  readonly fileBytes: number;
  /** Bytes of the tensors of experts (mixture-of-experts models), of which each token uses only a few. */
  readonly expertBytes: number;
}

const MAX_KEYS = 4096;
const MAX_TENSORS = 1 << 20;
const MAX_STRING_BYTES = 4 << 20;
const MAX_ARRAY_LENGTH = 16 << 20;
const WINDOW_BYTES = 1 << 20;

/** Throws {@link ModelFileError}. */
export function readGgufHeader(path: string): GgufHeader {
  let file: number;
  try {
    file = openSync(path, 'r');
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    throw new ModelFileError(code === 'ENOENT' ? `there is no model file at ${path}` : `the model file ${path} cannot be read (${code})`);
  }
  try {
    const stat = fstatSync(file);
    if (!stat.isFile()) throw new ModelFileError(`${path} is not a file`);
    return parse(new Reader(file, stat.size), stat.size);
  } catch (error) {
    if (error instanceof ModelFileError) throw error;
    throw new ModelFileError(`the model file ${path} is damaged: ${error instanceof Error ? error.message : 'unreadable'}`);
  } finally {
    closeSync(file);
  }
}

export function headerText({ values }: GgufHeader, key: string): string | null {
  const value = values.get(key);
  return typeof value === 'string' ? value : null;
}

/** Null for missing, infinite and NaN values, and for other types. */
export function headerNumber({ values }: GgufHeader, key: string): number | null {
  const value = values.get(key);
  if (typeof value === 'bigint') return Number(value);
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}

function parse(reader: Reader, fileBytes: number): GgufHeader {
  // The magic number: "GGUF", little-endian.
  if (fileBytes < 24 || reader.u32() !== 0x46554747) throw new Error('it is not a GGUF file');
  const version = reader.u32();
  if (version !== 2 && version !== 3) throw new Error(`GGUF version ${version} is not supported`);
  const tensorCount = reader.count(MAX_TENSORS, 'tensors');
  const keyCount = reader.count(MAX_KEYS, 'keys');
  const values = new Map<string, GgufScalar>();
  const arrayLengths = new Map<string, number>();
  for (let i = 0; i < keyCount; i++) {
    const key = reader.string();
    const type = reader.u32();
    if (type === ARRAY) arrayLengths.set(key, reader.skipArray());
    else values.set(key, reader.scalar(type));
  }
  const expertBytes = checkTensors(reader, tensorCount, values, fileBytes);
  return { values, arrayLengths, fileBytes, expertBytes };
}

/** Checks that every tensor lies inside the file, to detect truncated downloads. Returns the bytes of the experts' tensors. */
function checkTensors(reader: Reader, count: number, values: ReadonlyMap<string, GgufScalar>, fileBytes: number): number {
  let end = 0;
  let expertBytes = 0;
  for (let i = 0; i < count; i++) {
    const name = reader.string();
    const dimensions = reader.u32();
    if (dimensions > 4) throw new Error(`tensor ${quoteName(name)} has ${dimensions} dimensions`);
    let elements = 1;
    for (let d = 0; d < dimensions; d++) elements *= Number(reader.u64());
    const bytes = tensorBytes(reader.u32(), elements);
    const offset = Number(reader.u64());
    if (!Number.isSafeInteger(offset + bytes)) throw new Error(`tensor ${quoteName(name)} is larger than any file`);
    end = Math.max(end, offset + bytes);
    if (name.includes('_exps.')) expertBytes += bytes;
  }
  const alignment = Number(values.get('general.alignment') ?? 32);
  if (!Number.isInteger(alignment) || alignment < 1 || alignment > 1 << 20) throw new Error('its alignment is out of range');
  const dataStart = Math.ceil(reader.position / alignment) * alignment;
  const missing = dataStart + end - fileBytes;
  if (missing > 0) throw new Error(`it is incomplete: ${missing} bytes are missing`);
  return expertBytes;
}

/** Name in quotes, with escaped control characters, at most 64 characters. */
function quoteName(name: string): string {
  return JSON.stringify(name.slice(0, 64));
}

/** Numbers of value types: 0 to 7 and 10 to 12 are scalars of these sizes. */
const STRING = 8;
const ARRAY = 9;
const SCALAR_BYTES: Readonly<Record<number, number>> = { 0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8 };

/** Reads a file forward through a buffer of 1 MiB, or more for a longer value. */
class Reader {
  #window = Buffer.alloc(0);
  #windowStart = 0;
  position = 0;

  constructor(
    private readonly file: number,
    private readonly size: number,
  ) {}

  u32(): number {
    return this.#take(4).readUInt32LE();
  }

  u64(): bigint {
    return this.#take(8).readBigUInt64LE();
  }

  count(limit: number, what: string): number {
    const value = this.u64();
    if (value > BigInt(limit)) throw new Error(`it claims ${value} ${what}`);
    return Number(value);
  }

  string(): string {
    return this.#take(this.count(MAX_STRING_BYTES, 'bytes of text in one value')).toString('utf8');
  }

  scalar(type: number): GgufScalar {
    switch (type) {
      case 0:
        return this.#take(1).readUInt8();
      case 1:
        return this.#take(1).readInt8();
      case 2:
        return this.#take(2).readUInt16LE();
      case 3:
        return this.#take(2).readInt16LE();
      case 4:
        return this.u32();
      case 5:
        return this.#take(4).readInt32LE();
      case 6:
        return this.#take(4).readFloatLE();
      case 7:
        return this.#take(1).readUInt8() !== 0;
      case STRING:
        return this.string();
      case 10:
        return this.u64();
      case 11:
        return this.#take(8).readBigInt64LE();
      case 12:
        return this.#take(8).readDoubleLE();
      default:
        throw new Error(`a value has the unknown type ${type}`);
    }
  }

  skipArray(): number {
    const type = this.u32();
    const length = this.count(MAX_ARRAY_LENGTH, 'values in one list');
    const width = SCALAR_BYTES[type];
    if (width !== undefined) this.#skip(width * length);
    else if (type === STRING) for (let i = 0; i < length; i++) this.#skip(this.count(MAX_STRING_BYTES, 'bytes of text in one value'));
    else throw new Error(`a list has values of the unknown type ${type}`);
    return length;
  }

  #skip(bytes: number): void {
    if (this.position + bytes > this.size) throw new Error('its header is incomplete');
    this.position += bytes;
  }

  #take(bytes: number): Buffer {
    if (this.position + bytes > this.size) throw new Error('its header is incomplete');
    const from = this.position - this.#windowStart;
    if (from < 0 || from + bytes > this.#window.length) this.#fill(bytes);
    const start = this.position - this.#windowStart;
    this.position += bytes;
    return this.#window.subarray(start, start + bytes);
  }

  #fill(bytes: number): void {
    const window = Buffer.alloc(Math.min(Math.max(bytes, WINDOW_BYTES), this.size - this.position));
    let filled = 0;
    while (filled < window.length) {
      const read = readSync(this.file, window, filled, window.length - filled, this.position + filled);
      if (read === 0) throw new Error('it shrank while it was read');
      filled += read;
    }
    this.#window = window;
    this.#windowStart = this.position;
  }
}
