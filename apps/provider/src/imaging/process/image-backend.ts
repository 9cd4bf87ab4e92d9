/** `ImageBackend`: interface of image backends. A backend generates one image at a time, and can be cancelled between steps. */
import type { ImageEngineFacts, ImageRequest } from '../messages.js';

/** An image before encoding: 8 bits per colour, RGB, row by row. */
export interface RawImage {
  readonly width: number;
  readonly height: number;
  readonly rgb: Uint8Array;
}

export interface SingleImageRequest extends Omit<ImageRequest, 'count' | 'seed' | 'encoding' | 'quality'> {
  /** Decimal digits with an optional sign; determines the image. */
  readonly seed: string;
}

export interface ImageBackend {
  readonly facts: ImageEngineFacts;
  /** Number of prompt tokens that the model reads; 0 if the backend cannot count. */
  promptTokens(prompt: string): number;
  /** Throws the signal's reason when aborted between two steps. */
  generate(request: SingleImageRequest, onStep: (step: number) => void, signal: AbortSignal): Promise<RawImage>;
}
