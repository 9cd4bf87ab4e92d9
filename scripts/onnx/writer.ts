/** Writes ONNX models: the parts of onnx.proto3 for graphs with weights, in protocol buffer encoding. */

export type OnnxType = 'float32' | 'int32' | 'int64' | 'float16';

/** `TensorProto.DataType`. */
const TYPES: Readonly<Record<OnnxType, number>> = { float32: 1, int32: 6, int64: 7, float16: 10 };
/** `AttributeProto.AttributeType`. */
const ATTRIBUTE = { float: 1, int: 2, text: 3, ints: 7 } as const;
const IR_VERSION = 8;
const OPSET = 17;

export type Attribute = string | number | readonly number[] | { readonly float: number };

/** `null`, or a name, where the size is left open. */
export type Shape = readonly (number | string)[];

function varint(value: number): Buffer {
  const bytes: number[] = [];
  // Negative numbers are written as 64 bits.
  let rest = BigInt.asUintN(64, BigInt(value));
  for (; rest > 127n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
  return Buffer.from([...bytes, Number(rest)]);
}

const whole = (field: number, value: number): Buffer => Buffer.concat([varint(field << 3), varint(value)]);

export function bytes(field: number, value: Uint8Array | string): Buffer {
  const content = typeof value === 'string' ? Buffer.from(value) : value;
  return Buffer.concat([varint((field << 3) | 2), varint(content.length), content]);
}

function single(field: number, value: number): Buffer {
  const content = Buffer.alloc(4);
  content.writeFloatLE(value);
  return Buffer.concat([varint((field << 3) | 5), content]);
}

/** A weight stored inside the file. */
export function tensor(name: string, shape: readonly number[], data: ArrayBufferView, type: OnnxType = 'float32'): Buffer {
  const raw = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  return Buffer.concat([...shape.map((size) => whole(1, size)), whole(2, TYPES[type]), bytes(8, name), bytes(9, raw)]);
}

/** An input or output of the graph. */
export function valueInfo(name: string, type: OnnxType, shape: Shape): Buffer {
  const sizes = shape.map((size) => bytes(1, typeof size === 'string' ? bytes(2, size) : whole(1, size)));
  return Buffer.concat([bytes(1, name), bytes(2, bytes(1, Buffer.concat([whole(1, TYPES[type]), bytes(2, Buffer.concat(sizes))])))]);
}

export function node(
  type: string,
  name: string,
  inputs: readonly string[],
  outputs: readonly string[],
  attributes: Readonly<Record<string, Attribute>>,
): Buffer {
  return Buffer.concat([
    ...inputs.map((input) => bytes(1, input)),
    ...outputs.map((output) => bytes(2, output)),
    bytes(3, name),
    bytes(4, type),
    ...Object.entries(attributes).map(([key, value]) => bytes(5, attribute(key, value))),
  ]);
}

function attribute(name: string, value: Attribute): Buffer {
  const named = bytes(1, name);
  if (typeof value === 'string') return Buffer.concat([named, bytes(4, value), whole(20, ATTRIBUTE.text)]);
  if (typeof value === 'number') return Buffer.concat([named, whole(3, value), whole(20, ATTRIBUTE.int)]);
  if ('float' in value) return Buffer.concat([named, single(2, value.float), whole(20, ATTRIBUTE.float)]);
  return Buffer.concat([named, ...value.map((each) => whole(8, each)), whole(20, ATTRIBUTE.ints)]);
}

export interface GraphParts {
  readonly nodes: readonly Uint8Array[];
  readonly weights: readonly Uint8Array[];
  readonly inputs: readonly Uint8Array[];
  readonly outputs: readonly Uint8Array[];
}

/** The whole file. */
export function model(name: string, { nodes, weights, inputs, outputs }: GraphParts): Buffer {
  const graph = Buffer.concat([
    ...nodes.map((each) => bytes(1, each)),
    bytes(2, name),
    ...weights.map((each) => bytes(5, each)),
    ...inputs.map((each) => bytes(11, each)),
    ...outputs.map((each) => bytes(12, each)),
  ]);
  return Buffer.concat([
    whole(1, IR_VERSION),
    bytes(2, 'inference-network'),
    bytes(7, graph),
    bytes(8, Buffer.concat([bytes(1, ''), whole(2, OPSET)])),
  ]);
}
