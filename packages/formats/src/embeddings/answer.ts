/** `embeddingsBody` returns the response to an embeddings request in OpenAI's format. */
import type { Usage } from '@inference/protocol';
import { answerWithoutEvents, type ResponseMetadata } from '../format.js';

export interface EmbeddingsOutput {
  /** One vector per input, in order, as base64 of little-endian 32-bit floats. */
  readonly vectors: readonly string[];
  readonly encoding: 'float' | 'base64';
  readonly usage: Usage;
}

export function embeddingsBody({ model }: ResponseMetadata, { vectors, encoding, usage }: EmbeddingsOutput): string {
  return JSON.stringify({
    object: 'list',
    data: vectors.map((vector, index) => ({ object: 'embedding', index, embedding: encoding === 'base64' ? vector : floats(vector) })),
    model,
    usage: { prompt_tokens: usage.prompt_tokens, total_tokens: usage.total_tokens },
  });
}

export const embeddingsAnswer = answerWithoutEvents('embd-', { name: 'object', value: 'list' });

/** Decodes a vector. Nine significant digits identify a 32-bit float, and keep the JSON short. */
function floats(base64: string): number[] {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  return Array.from({ length: bytes.length / 4 }, (_, index) => Number(view.getFloat32(4 * index, true).toPrecision(9)));
}
