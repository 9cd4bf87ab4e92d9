/**
 * Converts a checkpoint folder of train.py to the language model and the projector that llama.cpp reads.
 *
 *   npx tsx scripts/demo-models/vision/export.ts checkpoint FOLDER
 */
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TensorType } from '../../fixtures/gguf/encode.js';
import { decimal, integer, type MetadataValue, type Tensor, text, truth, writeGguf } from '../../fixtures/gguf/writer.js';
import { Checkpoint, type DecoderCheckpoint, exportDecoder } from '../toolkit/export-decoder.js';

/** `VisionShape` of vit.py. */
interface VisionShape {
  encoder: { image: number; patch: number; dim: number; layers: number; heads: number; ff: number; epsilon: number };
  decoder: DecoderCheckpoint;
}

const COLOUR_PARTS = 3;
const half = (): MetadataValue => ({ type: 'float32s', value: new Array(COLOUR_PARTS).fill(0.5) });

/** Keys that llama.cpp's clip.cpp reads of a projector. */
function projectorMetadata({ encoder, decoder }: VisionShape): Map<string, MetadataValue> {
  return new Map<string, MetadataValue>([
    ['general.architecture', text('clip')],
    ['general.type', text('mmproj')],
    ['general.name', text('Viso demo projector')],
    ['general.license', text('apache-2.0')],
    ['general.file_type', integer(7)],
    ['clip.has_vision_encoder', truth(true)],
    ['clip.projector_type', text('janus_pro')],
    ['clip.use_gelu', truth(true)],
    ['clip.vision.image_size', integer(encoder.image)],
    ['clip.vision.patch_size', integer(encoder.patch)],
    ['clip.vision.embedding_length', integer(encoder.dim)],
    ['clip.vision.feed_forward_length', integer(encoder.ff)],
    ['clip.vision.block_count', integer(encoder.layers)],
    ['clip.vision.projection_dim', integer(decoder.dim)],
    ['clip.vision.attention.head_count', integer(encoder.heads)],
    ['clip.vision.attention.layer_norm_epsilon', decimal(encoder.epsilon)],
    ['clip.vision.image_mean', half()],
    ['clip.vision.image_std', half()],
  ]);
}

function projectorTensors(checkpoint: Checkpoint<VisionShape>): Tensor[] {
  const { encoder, decoder } = checkpoint.shape;
  const { dim, ff, patch } = encoder;
  const width = decoder.dim;
  const tensor = (source: string, name: string, shape: readonly number[], type: TensorType): Tensor =>
    checkpoint.tensor(`encoder.${source}`, name, shape, type);
  const norm = (source: string, name: string): Tensor[] =>
    ['weight', 'bias'].map((part) => tensor(`${source}.${part}`, `${name}.${part}`, [dim], 'F32'));
  const matrix = (source: string, name: string, from: number, to: number): Tensor =>
    tensor(`${source}.weight`, `${name}.weight`, [from, to], 'Q8_0');
  const block = (index: number): Tensor[] => {
    const [from, to] = [`blocks.${index}`, `v.blk.${index}`];
    return [
      ...norm(`${from}.ln1`, `${to}.ln1`),
      matrix(`${from}.q`, `${to}.attn_q`, dim, dim),
      matrix(`${from}.k`, `${to}.attn_k`, dim, dim),
      matrix(`${from}.v`, `${to}.attn_v`, dim, dim),
      matrix(`${from}.o`, `${to}.attn_out`, dim, dim),
      ...norm(`${from}.ln2`, `${to}.ln2`),
      matrix(`${from}.up`, `${to}.ffn_up`, dim, ff),
      matrix(`${from}.down`, `${to}.ffn_down`, ff, dim),
    ];
  };
  return [
    tensor('patch.weight', 'v.patch_embd.weight', [patch, patch, COLOUR_PARTS, dim], 'F16'),
    tensor('patch.bias', 'v.patch_embd.bias', [dim], 'F32'),
    tensor('position', 'v.position_embd.weight', [dim, (encoder.image / patch) ** 2], 'F32'),
    ...Array.from({ length: encoder.layers }, (_, index) => block(index)).flat(),
    ...norm('post_ln', 'v.post_ln'),
    matrix('mm0', 'mm.0', dim, 2 * width),
    tensor('mm0.bias', 'mm.0.bias', [2 * width], 'F32'),
    matrix('mm1', 'mm.1', 2 * width, width),
    tensor('mm1.bias', 'mm.1.bias', [width], 'F32'),
  ];
}

const [folder, out] = process.argv.slice(2);
if (folder && out) {
  mkdirSync(out, { recursive: true });
  const checkpoint = new Checkpoint<VisionShape>(folder);
  const template = readFileSync(new URL('../../../apps/provider/demo-models/viso/chat_template.jinja', import.meta.url), 'utf8');
  const language = { name: 'Viso demo', prefix: 'decoder.', template, type: 'Q8_0', out: join(out, 'viso.gguf') } as const;
  exportDecoder(checkpoint, checkpoint.shape.decoder, language);
  const projector = join(out, 'mmproj-viso.gguf');
  const bytes = writeGguf(projector, projectorMetadata(checkpoint.shape), projectorTensors(checkpoint));
  console.log(`${projector}: ${bytes} bytes`);
} else {
  process.stderr.write('usage: export.ts CHECKPOINT FOLDER\n');
  process.exitCode = 2;
}
