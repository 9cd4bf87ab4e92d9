/** `PromptImages`: the decoded images of a prompt, as placeholder tokens to insert and chunks (parts) to encode. */
import type { Token } from 'node-llama-cpp';
import type { PromptImage, PromptInput } from '../../messages.js';
import type { MediaChunk } from '../decoding/media-span.js';

/** An image cannot be decoded, or the model reads no images. */
export class ImageError extends Error {
  /** @param field Path of the image in the client's request. */
  constructor(readonly field: string) {
    super('an image cannot be decoded');
    this.name = 'ImageError';
  }
}

export interface PreparedImage {
  /** Text tokens around the image's parts, and placeholders: negative numbers from a hash of the pixels. */
  readonly tokens: readonly Token[];
  /** Chunks of the image; `start` counts from the first of `tokens`. */
  readonly chunks: readonly MediaChunk[];
}

export interface PromptImages {
  /** In the order of the prompt. */
  readonly images: readonly PreparedImage[];
  /** Frees native memory. No chunk may be read afterwards. May be called again. */
  free(): void;
}

export const NO_IMAGES: PromptImages = { images: [], free: () => {} };

export function imagesOfPrompt(prompt: PromptInput): readonly PromptImage[] {
  if (prompt.type === 'text') return [];
  return prompt.messages.flatMap(({ content }) =>
    typeof content === 'string' ? [] : content.flatMap((part) => (part.type === 'image' ? [part] : [])),
  );
}
