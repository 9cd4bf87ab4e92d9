/**
 * Converts a checkpoint folder of train.py to a GGUF file.
 *
 *   npx tsx scripts/demo-models/text/export.ts checkpoint pico.gguf [--type Q8_0|F16|F32]
 */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import type { TensorType } from '../../fixtures/gguf/encode.js';
import { Checkpoint, type DecoderCheckpoint, exportDecoder } from '../toolkit/export-decoder.js';

const TYPES: readonly TensorType[] = ['Q8_0', 'F16', 'F32'];
const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { type: { type: 'string', default: 'Q8_0' } },
});
const [folder, out] = positionals;
const type = TYPES.find((candidate) => candidate === values.type);
if (folder && out && type) {
  const checkpoint = new Checkpoint<DecoderCheckpoint>(folder);
  const template = readFileSync(new URL('../../../apps/provider/demo-models/pico/chat_template.jinja', import.meta.url), 'utf8');
  exportDecoder(checkpoint, checkpoint.shape, { name: 'Pico demo', prefix: '', template, type, out });
} else {
  process.stderr.write('usage: export.ts CHECKPOINT OUT.gguf [--type Q8_0|F16|F32]\n');
  process.exitCode = 2;
}
