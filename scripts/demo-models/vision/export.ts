/**
 * Converts a checkpoint folder of train.py to the language model and the projector that llama.cpp reads.
 *
 *   npx tsx scripts/demo-models/vision/export.ts checkpoint FOLDER
 */
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TensorType } from '../../fixtures/gguf/encode.js';
import { type ProjectorShape, type ProjectorSlot, projectorMetadata, projectorSlots } from '../../fixtures/gguf/projector.js';
import { integer, text, writeGguf } from '../../fixtures/gguf/writer.js';
import { Checkpoint, type DecoderCheckpoint, exportDecoder } from '../toolkit/export-decoder.js';

interface VisionShape {
  encoder: { image: number; patch: number; dim: number; layers: number; heads: number; ff: number };
  decoder: DecoderCheckpoint;
}

/** llama.cpp's `llama_ftype`. */
const Q8_0 = 7;
const TYPES: Record<ProjectorSlot['role'], TensorType> = { norm: 'F32', vector: 'F32', matrix: 'Q8_0', patch: 'F16' };
/** Names of tensors within a layer: llama.cpp's name, then the name in vit.py. */
const LAYER_NAMES = new Map([
  ['attn_q', 'q'],
  ['attn_k', 'k'],
  ['attn_v', 'v'],
  ['attn_out', 'o'],
  ['ffn_up', 'up'],
  ['ffn_down', 'down'],
]);
const NAMES = new Map([
  ['v.patch_embd.weight', 'patch.weight'],
  ['v.patch_embd.bias', 'patch.bias'],
  ['v.position_embd.weight', 'position'],
]);

function projectorShape({ encoder, decoder }: VisionShape): ProjectorShape {
  const { image: imageSize, patch: patchSize, dim, heads, layers, ff } = encoder;
  return { imageSize, patchSize, dim, heads, layers, ff, hiddenLength: 2 * decoder.dim, outputLength: decoder.dim };
}

function sourceName(name: string): string {
  const layer = /^v\.blk\.(\d+)\.(\w+)\.(\w+)$/.exec(name);
  if (layer) return `blocks.${layer[1]}.${LAYER_NAMES.get(layer[2] ?? '') ?? layer[2]}.${layer[3]}`;
  return NAMES.get(name) ?? name.replace(/^v\./, '').replace(/^mm\.(\d)/, 'mm$1');
}

function exportProjector(checkpoint: Checkpoint<VisionShape>, out: string): void {
  const shape = projectorShape(checkpoint.shape);
  const about = [
    ['general.name', text('Viso demo projector')],
    ['general.license', text('apache-2.0')],
    ['general.file_type', integer(Q8_0)],
  ] as const;
  const tensors = projectorSlots(shape).map((slot) =>
    checkpoint.tensor(`encoder.${sourceName(slot.name)}`, slot.name, slot.shape, TYPES[slot.role]),
  );
  console.log(`${out}: ${writeGguf(out, new Map([...projectorMetadata(shape), ...about]), tensors)} bytes`);
}

const [folder, out] = process.argv.slice(2);
if (folder && out) {
  mkdirSync(out, { recursive: true });
  const checkpoint = new Checkpoint<VisionShape>(folder);
  const template = readFileSync(new URL('../../../apps/provider/demo-models/viso/chat_template.jinja', import.meta.url), 'utf8');
  const language = { name: 'Viso demo', prefix: 'decoder.', template, type: 'Q8_0', out: join(out, 'viso.gguf') } as const;
  exportDecoder(checkpoint, checkpoint.shape.decoder, language);
  exportProjector(checkpoint, join(out, 'mmproj-viso.gguf'));
} else {
  process.stderr.write('usage: export.ts CHECKPOINT FOLDER\n');
  process.exitCode = 2;
}
