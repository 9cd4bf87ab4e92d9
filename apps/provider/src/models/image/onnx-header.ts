/**
 * `readOnnxHeader` reads the inputs, outputs and weight locations of an ONNX file, and rejects damaged ones.
 *
 * The file is a protobuf message; message names and field numbers below are from onnx.proto3.
 */
import { closeSync, fstatSync, openSync, readSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ModelFileError } from '../gguf-header.js';

export interface OnnxValue {
  readonly name: string;
  readonly type: string;
  /** Size of each dimension. Null if variable. */
  readonly shape: readonly (number | null)[];
}

export interface OnnxHeader {
  readonly inputs: readonly OnnxValue[];
  readonly outputs: readonly OnnxValue[];
  /** Names of further files that contain weights. */
  readonly external: readonly string[];
  /** Type of most of the weights. */
  readonly weightType: string | null;
}

/** `TensorProto.DataType` by number, with bytes per element (4-bit types share a byte). */
const TYPES: Readonly<Record<number, readonly [name: string, bytes: number]>> = {
  1: ['float32', 4],
  2: ['uint8', 1],
  3: ['int8', 1],
  4: ['uint16', 2],
  5: ['int16', 2],
  6: ['int32', 4],
  7: ['int64', 8],
  8: ['string', 0],
  9: ['bool', 1],
  10: ['float16', 2],
  11: ['float64', 8],
  12: ['uint32', 4],
  13: ['uint64', 8],
  16: ['bfloat16', 2],
  21: ['uint4', 0.5],
  22: ['int4', 0.5],
};
const EXTERNAL_LOCATION = 1;
/** Maximum bytes of names, shapes and similar fields; weights are not read. */
const MAX_TEXT_BYTES = 4096;
const MAX_DIMENSIONS = 16;
/** Maximum fields of one file; the largest models have some ten thousand graph nodes. */
const MAX_FIELDS = 5_000_000;
const WINDOW_BYTES = 1 << 16;

/** Throws {@link ModelFileError}. */
export function readOnnxHeader(path: string): OnnxHeader {
  let fd: number;
  try {
    // Opening a pipe would wait forever.
    if (!statSync(path).isFile()) throw new Error('no file');
    fd = openSync(path, 'r');
  } catch {
    throw new ModelFileError(`the model needs the file ${path}, which is missing or cannot be read`);
  }
  try {
    const bytes = fstatSync(fd).size;
    return new OnnxReader(new Window(fd, bytes), path).read(bytes);
  } catch (error) {
    if (error instanceof Damaged) throw new ModelFileError(`the model file ${path} is not a valid ONNX file: ${error.message}`);
    throw error;
  } finally {
    closeSync(fd);
  }
}

/** Caught in this file, which adds the path. */
class Damaged extends Error {}

/** Reads a file in blocks, so that not every byte costs a system call. */
class Window {
  readonly #buffer = Buffer.alloc(WINDOW_BYTES);
  #start = 0;
  #length = 0;

  constructor(
    private readonly fd: number,
    private readonly fileBytes: number,
  ) {}

  byte(at: number): number {
    if (at < this.#start || at >= this.#start + this.#length) {
      if (at >= this.fileBytes) throw new Damaged('it is truncated');
      this.#start = at;
      this.#length = readSync(this.fd, this.#buffer, 0, WINDOW_BYTES, at);
      if (this.#length <= 0) throw new Damaged('it is truncated');
    }
    return this.#buffer[at - this.#start] as number;
  }

  text(at: number, length: number): string {
    if (length > MAX_TEXT_BYTES) throw new Damaged('a name is too long');
    const bytes = Buffer.alloc(length);
    for (let index = 0; index < length; index++) bytes[index] = this.byte(at + index);
    return bytes.toString('utf8');
  }
}

interface Field {
  readonly number: number;
  /** Value of a number field; 0 for bytes. */
  readonly value: number;
  /** Range of a bytes field; empty for a number. */
  readonly start: number;
  readonly end: number;
}

class OnnxReader {
  readonly #inputs: OnnxValue[] = [];
  readonly #outputs: OnnxValue[] = [];
  /** Names of the tensors with weights, which older files also list as inputs. */
  readonly #weights = new Set<string>();
  /** Key: name of an external file. Value: bytes that it must have. */
  readonly #bytesByExternal = new Map<string, number>();
  readonly #bytesByType = new Map<string, number>();
  #fieldsSeen = 0;

  constructor(
    private readonly window: Window,
    private readonly path: string,
  ) {}

  read(fileBytes: number): OnnxHeader {
    let graphs = 0;
    // ModelProto: graph = 7.
    for (const field of this.#fields(0, fileBytes)) {
      if (field.number !== 7 || field.end === field.start) continue;
      graphs++;
      this.#graph(field);
    }
    if (graphs !== 1) throw new Damaged('it does not contain exactly one graph');
    const [weightType] = [...this.#bytesByType].sort((a, b) => b[1] - a[1]).map(([type]) => type);
    return {
      inputs: this.#inputs.filter(({ name }) => !this.#weights.has(name)),
      outputs: this.#outputs,
      external: this.#checkedExternal(),
      weightType: weightType ?? null,
    };
  }

  /** GraphProto: initializer = 5, input = 11, output = 12. */
  #graph({ start, end }: Field): void {
    for (const field of this.#fields(start, end)) {
      if (field.number === 5) this.#tensor(field);
      else if (field.number === 11) this.#inputs.push(this.#value(field));
      else if (field.number === 12) this.#outputs.push(this.#value(field));
    }
  }

  /** ValueInfoProto: name = 1, type = 2; TypeProto: tensor_type = 1; its elem_type = 1, shape = 2. */
  #value(of: Field): OnnxValue {
    let name = '';
    let type = 'unknown';
    const shape: (number | null)[] = [];
    for (const field of this.#fields(of.start, of.end)) {
      if (field.number === 1) name = this.window.text(field.start, field.end - field.start);
      if (field.number !== 2) continue;
      for (const tensor of this.#fieldsNumbered(field, 1)) {
        for (const part of this.#fields(tensor.start, tensor.end)) {
          if (part.number === 1) type = TYPES[part.value]?.[0] ?? 'unknown';
          if (part.number === 2) for (const dimension of this.#fieldsNumbered(part, 1)) shape.push(this.#dimension(dimension));
        }
      }
    }
    if (shape.length > MAX_DIMENSIONS) throw new Damaged('a tensor has too many dimensions');
    return { name, type, shape };
  }

  /** TensorShapeProto.Dimension: dim_value = 1, dim_param = 2. */
  #dimension(of: Field): number | null {
    const [size] = this.#fieldsNumbered(of, 1);
    return size === undefined || size.value <= 0 ? null : size.value;
  }

  /**
   * TensorProto: dims = 1, data_type = 2, name = 8, raw_data = 9, external_data = 13, data_location = 14; other fields contain typed
   * data.
   */
  #tensor(of: Field): void {
    let elements = 1;
    let dimensions = 0;
    let type = 0;
    let raw: number | null = null;
    let typed = 0;
    let location = 0;
    const external = new Map<string, string>();
    const dimension = (size: number): void => {
      elements *= size;
      if (++dimensions > MAX_DIMENSIONS || size < 0 || !Number.isSafeInteger(elements))
        throw new Damaged('the dimensions of a tensor are invalid');
    };
    for (const field of this.#fields(of.start, of.end)) {
      if (field.number === 1 && field.end > field.start) for (const size of this.#packed(field)) dimension(size);
      else if (field.number === 1) dimension(field.value);
      else if (field.number === 2) type = field.value;
      else if (field.number === 8) this.#weights.add(this.window.text(field.start, field.end - field.start));
      else if (field.number === 9) raw = field.end - field.start;
      else if (field.number === 13) {
        const [key, value] = [1, 2].map((number) => this.#fieldsNumbered(field, number)[0]);
        if (key !== undefined && value !== undefined) {
          external.set(this.window.text(key.start, key.end - key.start), this.window.text(value.start, value.end - value.start));
        }
      } else if (field.number === 14) location = field.value;
      else typed += field.end - field.start;
    }
    const [name, size] = TYPES[type] ?? ['unknown', 0];
    const expected = Math.ceil(elements * size);
    this.#bytesByType.set(name, (this.#bytesByType.get(name) ?? 0) + expected);
    if (location === EXTERNAL_LOCATION) this.#takeExternal(external, expected);
    else if (raw !== null ? raw !== expected : typed === 0 && expected > 0)
      throw new Damaged('the data of a tensor does not match its dimensions');
    // Typed data takes at least half a byte per number: two 4-bit numbers share a byte.
    else if (raw === null && elements > Math.max(1, typed) * 2) throw new Damaged('the data of a tensor does not match its dimensions');
  }

  #takeExternal(entries: ReadonlyMap<string, string>, expected: number): void {
    const location = entries.get('location') ?? '';
    const offset = Number(entries.get('offset') ?? 0);
    const length = Number(entries.get('length') ?? expected);
    const isPlain = /^[A-Za-z0-9_][A-Za-z0-9_.-]*$/.test(location);
    if (!isPlain || !Number.isSafeInteger(offset) || offset < 0 || length !== expected) {
      throw new Damaged('the location of its external weights is invalid');
    }
    this.#bytesByExternal.set(location, Math.max(this.#bytesByExternal.get(location) ?? 0, offset + length));
  }

  #checkedExternal(): string[] {
    for (const [name, bytes] of this.#bytesByExternal) {
      const stat = statSync(join(dirname(this.path), name), { throwIfNoEntry: false });
      if (stat === undefined) throw new Damaged(`its weights file ${name} is missing`);
      if (stat.size < bytes) throw new Damaged(`${name} is shorter than its weights`);
    }
    return [...this.#bytesByExternal.keys()];
  }

  #fieldsNumbered(of: Field, number: number): Field[] {
    return [...this.#fields(of.start, of.end)].filter((field) => field.number === number);
  }

  *#packed({ start, end }: Field): Generator<number> {
    for (let at = start; at < end; ) {
      const [value, next] = this.#varint(at);
      yield value;
      at = next;
    }
  }

  *#fields(start: number, end: number): Generator<Field> {
    for (let at = start; at < end; ) {
      if (++this.#fieldsSeen > MAX_FIELDS) throw new Damaged('it has too many fields');
      const [key, afterKey] = this.#varint(at);
      const number = Math.floor(key / 8);
      switch (key % 8) {
        case 0: {
          const [value, next] = this.#varint(afterKey);
          yield { number, value, start: next, end: next };
          at = next;
          break;
        }
        case 1:
          at = afterKey + 8;
          break;
        case 2: {
          const [length, next] = this.#varint(afterKey);
          at = next + length;
          if (!Number.isSafeInteger(at) || at > end) throw new Damaged('a field is longer than its message');
          yield { number, value: 0, start: next, end: at };
          break;
        }
        case 5:
          at = afterKey + 4;
          break;
        default:
          throw new Damaged('its fields cannot be read');
      }
      if (at > end) throw new Damaged('it is truncated');
    }
  }

  /** A number of variable length. Negative numbers are read as large ones, which no field permits. */
  #varint(at: number): [value: number, next: number] {
    let value = 0;
    for (let index = 0; index < 10; index++) {
      const byte = this.window.byte(at + index);
      value += (byte & 127) * 2 ** (7 * index);
      if (byte < 128) return [value, at + index + 1];
    }
    throw new Damaged('its fields cannot be read');
  }
}
