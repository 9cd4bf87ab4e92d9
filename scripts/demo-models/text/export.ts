/**
 * Converts a checkpoint folder of train.py to a GGUF file.
 *
 *   npx tsx scripts/demo-models/text/export.ts checkpoint pico.gguf [--type Q8_0|F16|F32]
 */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { type DecoderShape, decoderMetadata, decoderTensors, parameterCount } from '../../fixtures/gguf/decoder.js';
import type { TensorType } from '../../fixtures/gguf/encode.js';
import { tokenizerMetadata, type Vocabulary } from '../../fixtures/gguf/tokenizer.js';
import { type Tensor, writeGguf } from '../../fixtures/gguf/writer.js';

/** Contents of meta.json, written by checkpoint.py. */
interface Checkpoint {
  shape: {
    vocab: number;
    dim: number;
    layers: number;
    heads: number;
    kv_heads: number;
    ff: number;
    context: number;
    rope_base: number;
    epsilon: number;
  };
  tensors: Record<string, { shape: number[]; offset: number }>;
}

/** llama.cpp's matrix name within a layer, and the name in model.py. */
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

function sourceName(name: string): string {
  const layer = /^blk\.(\d+)\.(\w+)\.weight$/.exec(name);
  if (layer) return `blocks.${layer[1]}.${LAYER_NAMES.get(layer[2] ?? '')}.weight`;
  return name === 'token_embd.weight' ? 'emb.weight' : 'norm.weight';
}

function decoderShape({ shape }: Checkpoint): DecoderShape {
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

function exportModel(folder: string, out: string, type: TensorType): void {
  const checkpoint = JSON.parse(readFileSync(`${folder}/meta.json`, 'utf8')) as Checkpoint;
  const vocabulary = JSON.parse(readFileSync(`${folder}/tokenizer.json`, 'utf8')) as Vocabulary;
  const weights = readFileSync(`${folder}/weights.bin`);
  const shape = decoderShape(checkpoint);
  const slots = decoderTensors(shape);
  const tensors = slots.map((slot): Tensor => {
    const source = checkpoint.tensors[sourceName(slot.name)];
    if (!source) throw new Error(`the checkpoint has no ${sourceName(slot.name)}`);
    const count = parameterCount([slot]);
    const chunks = (): Float32Array[] => [new Float32Array(weights.buffer, weights.byteOffset + source.offset, count)];
    return { name: slot.name, shape: slot.shape, type: slot.role === 'norm' ? 'F32' : type, chunks };
  });
  const parameters = parameterCount(slots);
  const about = { name: 'Pico demo', sizeLabel: `${(parameters / 1e6).toFixed(1)}M`, license: 'apache-2.0', type };
  const template = readFileSync(new URL('../../../apps/provider/demo-models/pico/chat_template.jinja', import.meta.url), 'utf8');
  const metadata = new Map([...decoderMetadata(shape, about), ...tokenizerMetadata(vocabulary, template.trimEnd())]);
  const bytes = writeGguf(out, metadata, tensors);
  console.log(`${out}: ${parameters} parameters, ${bytes} bytes`);
}

const TYPES: readonly TensorType[] = ['Q8_0', 'F16', 'F32'];
const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { type: { type: 'string', default: 'Q8_0' } },
});
const [folder, out] = positionals;
const type = TYPES.find((candidate) => candidate === values.type);
if (folder && out && type) exportModel(folder, out, type);
else {
  process.stderr.write('usage: export.ts CHECKPOINT OUT.gguf [--type Q8_0|F16|F32]\n');
  process.exitCode = 2;
}
