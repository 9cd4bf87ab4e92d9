/** Builds ONNX graphs layer by layer, with seeded random weights. */
import { type Attribute, model, node, type OnnxType, type Shape, tensor, valueInfo } from './writer.js';

export class GraphBuilder {
  readonly #nodes: Buffer[] = [];
  readonly #weights: Buffer[] = [];
  readonly #inputs: Buffer[] = [];
  readonly #outputs: Buffer[] = [];
  readonly #normal: () => number;
  #names = 0;

  constructor(seed: number) {
    this.#normal = normal(seed);
  }

  input(name: string, type: OnnxType, shape: Shape): string {
    this.#inputs.push(valueInfo(name, type, shape));
    return name;
  }

  output(name: string, type: OnnxType, shape: Shape, from: string): void {
    this.#nodes.push(node('Identity', `node${this.#names++}`, [from], [name], {}));
    this.#outputs.push(valueInfo(name, type, shape));
  }

  op(type: string, inputs: readonly string[], attributes: Readonly<Record<string, Attribute>> = {}): string {
    const output = `value${this.#names++}`;
    this.#nodes.push(node(type, `node${this.#names++}`, inputs, [output], attributes));
    return output;
  }

  constant(shape: readonly number[], data: ArrayBufferView, type: OnnxType = 'float32'): string {
    const name = `weight${this.#names++}`;
    this.#weights.push(tensor(name, shape, data, type));
    return name;
  }

  random(shape: readonly number[], scale: number): string {
    const values = new Float32Array(shape.reduce((product, size) => product * size, 1));
    for (let index = 0; index < values.length; index++) values[index] = scale * this.#normal();
    return this.constant(shape, values);
  }

  number(value: number): string {
    return this.constant([], Float32Array.of(value));
  }

  integers(values: readonly number[]): string {
    return this.constant([values.length], BigInt64Array.from(values, BigInt), 'int64');
  }

  linear(x: string, from: number, to: number): string {
    return this.op('Add', [this.op('MatMul', [x, this.random([from, to], 1 / Math.sqrt(from))]), this.random([to], 0.02)]);
  }

  convolution(x: string, from: number, to: number, size = 3, stride = 1): string {
    const side = size >> 1;
    return this.op('Conv', [x, this.random([to, from, size, size], 1 / Math.sqrt(from * size * size)), this.random([to], 0.02)], {
      kernel_shape: [size, size],
      pads: [side, side, side, side],
      strides: [stride, stride],
    });
  }

  silu(x: string): string {
    return this.op('Mul', [x, this.op('Sigmoid', [x])]);
  }

  layerNorm(x: string, width: number): string {
    const [scale, bias] = [new Float32Array(width).fill(1), new Float32Array(width)].map((values) => this.constant([width], values));
    return this.op('LayerNormalization', [x, scale as string, bias as string], { axis: -1, epsilon: { float: 1e-5 } });
  }

  groupNorm(x: string, groups: number): string {
    const [scale, bias] = [new Float32Array(groups).fill(1), new Float32Array(groups)].map((values) => this.constant([groups], values));
    const grouped = this.op('Reshape', [x, this.integers([0, groups, -1])]);
    const normed = this.op('InstanceNormalization', [grouped, scale as string, bias as string], { epsilon: { float: 1e-5 } });
    return this.op('Reshape', [normed, this.op('Shape', [x])]);
  }

  /** Of `[batch, length, width]` each. */
  attention(query: string, key: string, value: string, width: number, heads: number): string {
    const split = (x: string): string =>
      this.op('Transpose', [this.op('Reshape', [x, this.integers([0, 0, heads, width / heads])])], { perm: [0, 2, 1, 3] });
    const scores = this.op('MatMul', [split(query), this.op('Transpose', [split(key)], { perm: [0, 1, 3, 2] })]);
    const weights = this.op('Softmax', [this.op('Mul', [scores, this.number(Math.sqrt(heads / width))])], { axis: -1 });
    const mixed = this.op('Transpose', [this.op('MatMul', [weights, split(value)])], { perm: [0, 2, 1, 3] });
    return this.op('Reshape', [mixed, this.integers([0, 0, width])]);
  }

  doubled(x: string): string {
    return this.op('Resize', [x, '', this.constant([4], Float32Array.of(1, 1, 2, 2))], {
      mode: 'nearest',
      nearest_mode: 'floor',
      coordinate_transformation_mode: 'asymmetric',
    });
  }

  /** The file. */
  model(name: string): Buffer {
    return model(name, { nodes: this.#nodes, weights: this.#weights, inputs: this.#inputs, outputs: this.#outputs });
  }
}

/** Numbers of a normal distribution (mulberry32, Box and Muller). */
function normal(seed: number): () => number {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return () => Math.sqrt(-2 * Math.log(next() + 1e-12)) * Math.cos(2 * Math.PI * next());
}
