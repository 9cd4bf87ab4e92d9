/** GGUF files of projectors with headers like those of real ones and one small tensor, for tests that load no model. */
import { join } from 'node:path';
import { integer, type MetadataValue, text, truth, writeGguf } from '../../../scripts/fixtures/gguf/writer.js';

export interface ProjectorHeader {
  /** Default: `gemma3` with images of 896 × 896 pixels. */
  readonly type?: string;
  readonly imageSize?: number;
  readonly patchSize?: number;
  /** Further members of `clip.vision`. */
  readonly more?: Readonly<Record<string, number>>;
  /** Length of the embeddings for the language model. */
  readonly outputLength: number;
  readonly encoder?: 'vision' | 'audio';
}

/** Writes the file and returns its path. */
export function writeProjectorHeader(folder: string, name: string, shape: ProjectorHeader): string {
  const { type = 'gemma3', imageSize = 896, patchSize = 14, more = {}, outputLength, encoder = 'vision' } = shape;
  const metadata = new Map<string, MetadataValue>([
    ['general.architecture', text('clip')],
    ['general.type', text('mmproj')],
    [`clip.has_${encoder}_encoder`, truth(true)],
    ['clip.projector_type', text(type)],
  ]);
  const numbers = { ...more, image_size: imageSize, patch_size: patchSize, projection_dim: outputLength };
  for (const [key, value] of Object.entries({ ...numbers, embedding_length: 1152, feed_forward_length: 4304 })) {
    metadata.set(`clip.${encoder}.${key}`, integer(value));
  }
  const path = join(folder, name);
  writeGguf(path, metadata, [{ name: 'v.patch_embd.weight', shape: [32], type: 'F32', chunks: () => [new Float32Array(32)] }]);
  return path;
}
