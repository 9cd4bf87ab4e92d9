/** `ImageBackend`: runs an image model in the image process. Generates one image at a time, and can be cancelled between steps. */
import type { ImageEngineFacts, ImageRequest } from '../messages.js';

/** An unencoded image: RGB, 8 bits per colour, row by row. */
export interface RawImage {
  readonly width: number;
  readonly height: number;
  readonly rgb: Uint8Array;
}

export interface SingleImageRequest extends Omit<ImageRequest, 'count' | 'seed' | 'encoding' | 'quality'> {
  /** An integer of any size, in decimal digits. */
  readonly seed: string;
}

export interface ImageBackend {
  readonly facts: ImageEngineFacts;
  /** Number of prompt tokens that the model reads; 0 if the backend cannot count. */
  promptTokens(prompt: string): number;
  /** Throws the signal's reason once aborted. */
  generate(request: SingleImageRequest, onStep: (step: number) => void, signal: AbortSignal): Promise<RawImage>;
}
