/** Metadata and tensors that llama.cpp expects of a `llama` or `qwen3` model. */
import type { TensorType } from './encode.js';
import { decimal, integer, type MetadataValue, text } from './writer.js';

export type Architecture = 'llama' | 'qwen3';

export interface DecoderShape {
  architecture: Architecture;
  layers: number;
  dim: number;
  heads: number;
  kvHeads: number;
  headDim: number;
  ff: number;
  context: number;
  vocab: number;
  ropeBase: number;
  epsilon: number;
  /** Tied embeddings: without `output.weight` llama.cpp uses the token embedding for the output too. */
  tied: boolean;
}

export interface Description {
  name: string;
  /** Weights in round numbers, such as 60M. */
  sizeLabel: string;
  license: string;
  type: TensorType;
}

export interface TensorSlot {
  name: string;
  /** In ggml's order: inputs first, then outputs. */
  shape: readonly number[];
  role: 'norm' | 'embedding' | 'matrix';
}

/** llama.cpp's `llama_ftype`. */
const FILE_TYPE: Record<TensorType, number> = { F32: 0, F16: 1, Q8_0: 7 };

export function decoderMetadata(shape: DecoderShape, about: Description): Map<string, MetadataValue> {
  const arch = shape.architecture;
  return new Map<string, MetadataValue>([
    ['general.architecture', text(arch)],
    ['general.type', text('model')],
    ['general.name', text(about.name)],
    ['general.size_label', text(about.sizeLabel)],
    ['general.license', text(about.license)],
    ['general.file_type', integer(FILE_TYPE[about.type])],
    [`${arch}.context_length`, integer(shape.context)],
    [`${arch}.embedding_length`, integer(shape.dim)],
    [`${arch}.block_count`, integer(shape.layers)],
    [`${arch}.feed_forward_length`, integer(shape.ff)],
    [`${arch}.attention.head_count`, integer(shape.heads)],
    [`${arch}.attention.head_count_kv`, integer(shape.kvHeads)],
    [`${arch}.attention.key_length`, integer(shape.headDim)],
    [`${arch}.attention.value_length`, integer(shape.headDim)],
    [`${arch}.attention.layer_norm_rms_epsilon`, decimal(shape.epsilon)],
    [`${arch}.rope.dimension_count`, integer(shape.headDim)],
    [`${arch}.rope.freq_base`, decimal(shape.ropeBase)],
    [`${arch}.vocab_size`, integer(shape.vocab)],
  ]);
}

export function decoderTensors(shape: DecoderShape): TensorSlot[] {
  const { dim, ff } = shape;
  const queries = shape.heads * shape.headDim;
  const keys = shape.kvHeads * shape.headDim;
  const norm = (name: string, length: number): TensorSlot => ({ name, shape: [length], role: 'norm' });
  const matrix = (name: string, from: number, to: number): TensorSlot => ({ name, shape: [from, to], role: 'matrix' });
  const layer = (index: number): TensorSlot[] => {
    const at = `blk.${index}`;
    const headNorms = [norm(`${at}.attn_q_norm.weight`, shape.headDim), norm(`${at}.attn_k_norm.weight`, shape.headDim)];
    return [
      norm(`${at}.attn_norm.weight`, dim),
      matrix(`${at}.attn_q.weight`, dim, queries),
      matrix(`${at}.attn_k.weight`, dim, keys),
      matrix(`${at}.attn_v.weight`, dim, keys),
      matrix(`${at}.attn_output.weight`, queries, dim),
      ...(shape.architecture === 'qwen3' ? headNorms : []),
      norm(`${at}.ffn_norm.weight`, dim),
      matrix(`${at}.ffn_gate.weight`, dim, ff),
      matrix(`${at}.ffn_up.weight`, dim, ff),
      matrix(`${at}.ffn_down.weight`, ff, dim),
    ];
  };
  return [
    { name: 'token_embd.weight', shape: [dim, shape.vocab], role: 'embedding' },
    ...Array.from({ length: shape.layers }, (_, index) => layer(index)).flat(),
    norm('output_norm.weight', dim),
    ...(shape.tied ? [] : [matrix('output.weight', dim, shape.vocab)]),
  ];
}

export function parameterCount(slots: readonly TensorSlot[]): number {
  return slots.reduce((sum, slot) => sum + slot.shape.reduce((product, length) => product * length, 1), 0);
}
