/** Reads the checkpoint folders that checkpoint.py writes, and exports the decoder of model.py to GGUF. */
import { readFileSync } from 'node:fs';
import { type DecoderShape, decoderMetadata, decoderTensors, parameterCount } from '../../fixtures/gguf/decoder.js';
import type { TensorType } from '../../fixtures/gguf/encode.js';
import { tokenizerMetadata, type Vocabulary } from '../../fixtures/gguf/tokenizer.js';
import { type Tensor, writeGguf } from '../../fixtures/gguf/writer.js';

/** Member `shape` of meta.json: `Shape` of model.py. */
export interface DecoderCheckpoint {
  vocab: number;
  dim: number;
  layers: number;
  heads: number;
  kv_heads: number;
  ff: number;
  context: number;
  rope_base: number;
  epsilon: number;
}

/** Names of matrices within a layer: llama.cpp's name, then the name in model.py. */
const LAYER_NAMES = new Map([
  ['attn_norm', 'attn_norm'],
  ['attn_q', 'q'],
  ['attn_k', 'k'],
  ['attn_v', 'v'],
  ['attn_output', 'o'],
  ['attn_q_norm', 'q_norm'],
  ['attn_k_norm', 'k_norm'],
  ['ffn_norm', 'ffn_norm'],
  ['ffn_gate', 'gate'],
  ['ffn_up', 'up'],
  ['ffn_down', 'down'],
]);

export class Checkpoint<Shape> {
  readonly shape: Shape;
  readonly vocabulary: Vocabulary;
  readonly #tensors: Record<string, { shape: number[]; offset: number }>;
  readonly #weights: Buffer;

  constructor(folder: string) {
    const meta = JSON.parse(readFileSync(`${folder}/meta.json`, 'utf8')) as {
      shape: Shape;
      tensors: Record<string, { shape: number[]; offset: number }>;
    };
    this.shape = meta.shape;
    this.vocabulary = JSON.parse(readFileSync(`${folder}/tokenizer.json`, 'utf8')) as Vocabulary;
    this.#tensors = meta.tensors;
    this.#weights = readFileSync(`${folder}/weights.bin`);
  }

  /** The weights `source` of the checkpoint, as a tensor with the name `name`. */
  tensor(source: string, name: string, shape: readonly number[], type: TensorType): Tensor {
    const found = this.#tensors[source];
    if (!found) throw new Error(`the checkpoint has no ${source}`);
    const count = shape.reduce((product, length) => product * length, 1);
    const chunks = (): Float32Array[] => [new Float32Array(this.#weights.buffer, this.#weights.byteOffset + found.offset, count)];
    return { name, shape, type, chunks };
  }
}

function sourceName(name: string): string {
  const layer = /^blk\.(\d+)\.(\w+)\.weight$/.exec(name);
  if (layer) return `blocks.${layer[1]}.${LAYER_NAMES.get(layer[2] ?? '')}.weight`;
  return name === 'token_embd.weight' ? 'emb.weight' : 'norm.weight';
}

function decoderShape(shape: DecoderCheckpoint): DecoderShape {
  return {
    architecture: 'qwen3',
    layers: shape.layers,
    dim: shape.dim,
    heads: shape.heads,
    kvHeads: shape.kv_heads,
    headDim: shape.dim / shape.heads,
    ff: shape.ff,
    context: shape.context,
    vocab: shape.vocab,
    ropeBase: shape.rope_base,
    epsilon: shape.epsilon,
    tied: true,
  };
}

/** Writes a decoder to GGUF, with the checkpoint's tokenizer and a chat template. The names of its weights begin with `prefix`. */
export function exportDecoder(
  checkpoint: Checkpoint<unknown>,
  decoder: DecoderCheckpoint,
  { name, prefix, template, type, out }: { name: string; prefix: string; template: string; type: TensorType; out: string },
): void {
  const shape = decoderShape(decoder);
  const slots = decoderTensors(shape);
  const tensors = slots.map((slot) =>
    checkpoint.tensor(prefix + sourceName(slot.name), slot.name, slot.shape, slot.role === 'norm' ? 'F32' : type),
  );
  const parameters = parameterCount(slots);
  const about = { name, sizeLabel: `${(parameters / 1e6).toFixed(1)}M`, license: 'apache-2.0', type };
  const metadata = new Map([...decoderMetadata(shape, about), ...tokenizerMetadata(checkpoint.vocabulary, template.trimEnd())]);
  const bytes = writeGguf(out, metadata, tensors);
  console.log(`${out}: ${parameters} parameters, ${bytes} bytes`);
}
