/** `PromptImages`: the decoded images of a prompt, as tokens to insert and chunks to read. */
import type { Token } from 'node-llama-cpp';
import type { PromptImage, PromptInput } from '../../messages.js';
import type { MediaChunk } from '../decoding/media-span.js';

export class ImageError extends Error {
  /** @param field Path of the image in the client's request. */
  constructor(readonly field: string) {
    super('an image cannot be decoded');
    this.name = 'ImageError';
  }
}

export interface PreparedImage {
  /** Text tokens around the image, and placeholders: negative numbers from a hash of the image's pixels. */
  readonly tokens: readonly Token[];
  /** Chunks of the image; `start` counts from the first of `tokens`. */
  readonly chunks: readonly MediaChunk[];
}

export interface PromptImages {
  /** In the order of the prompt. */
  readonly images: readonly PreparedImage[];
  /** Frees native memory. No chunk may be read afterwards. */
  free(): void;
}

export const NO_IMAGES: PromptImages = { images: [], free: () => {} };

export function imagesOfPrompt(prompt: PromptInput): readonly PromptImage[] {
  if (prompt.type === 'text') return [];
  return prompt.messages.flatMap(({ content }) =>
    typeof content === 'string' ? [] : content.flatMap((part) => (part.type === 'image' ? [part] : [])),
  );
}
