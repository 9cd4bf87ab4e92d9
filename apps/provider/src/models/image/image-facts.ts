/** What an image model makes, and what drawing takes of a machine. Pure. */

export interface ImageSize {
  readonly width: number;
  readonly height: number;
}

export interface ImageFacts {
  readonly engine: 'onnx' | 'stable-diffusion.cpp';
  /** Sizes that the model makes, its own first. */
  readonly sizes: readonly ImageSize[];
  /** Steps of a drawing, and how strictly it keeps to the prompt, where a request says nothing of it. */
  readonly steps: number;
  readonly guidance: number;
  /** Pixels of the image for one of the latent, in each direction. */
  readonly scale: number;
}

/** Images of one job. */
export const MAX_IMAGES_OF_A_JOB = 4;

/** Bytes that drawing takes beside the weights: activations of the decoder for each pixel, and attention among all places of the latent. */
export function drawingBytes({ engine, scale }: Pick<ImageFacts, 'engine' | 'scale'>, { width, height }: ImageSize): number {
  const pixels = width * height;
  const places = pixels / scale ** 2;
  // stable-diffusion.cpp computes attention in pieces.
  return BYTES_PER_PIXEL * pixels + (engine === 'onnx' ? BYTES_PER_PAIR * places ** 2 : 0);
}

/** Some hundred channels at full size, as 32-bit floats, a few of them at once. */
const BYTES_PER_PIXEL = 3000;
/** Eight heads, two batches of guidance, 32-bit floats. */
const BYTES_PER_PAIR = 64;

/** The sizes whose drawing takes no more than so many bytes, the model's own first. */
export function sizesWithin(facts: ImageFacts, bytes: number): ImageSize[] {
  return facts.sizes.filter((size) => drawingBytes(facts, size) <= bytes);
}

export function sizeText({ width, height }: ImageSize): string {
  return `${width}x${height}`;
}
