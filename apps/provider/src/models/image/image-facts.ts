/** Properties of an image model, and estimates of the memory of image jobs. Pure. */

export interface ImageSize {
  readonly width: number;
  readonly height: number;
}

export interface ImageFacts {
  readonly engine: 'onnx' | 'stable-diffusion.cpp';
  /** Supported sizes, the native size first. */
  readonly sizes: readonly ImageSize[];
  /** Default number of denoising steps. */
  readonly steps: number;
  /** Default scale of classifier-free guidance. */
  readonly guidance: number;
  /** Image pixels per pixel of the latent (the compressed image that the model denoises), in each direction. */
  readonly scale: number;
}

export const MAX_IMAGES_OF_A_JOB = 4;

/** Bytes of an image job besides the weights: decoder activations per pixel, and attention between all pairs of latent pixels. */
export function imageJobBytes({ engine, scale }: Pick<ImageFacts, 'engine' | 'scale'>, { width, height }: ImageSize): number {
  const pixels = width * height;
  const latentPixels = pixels / scale ** 2;
  // stable-diffusion.cpp computes attention in pieces.
  return BYTES_PER_PIXEL * pixels + (engine === 'onnx' ? BYTES_PER_PAIR * latentPixels ** 2 : 0);
}

/** Decoder: several hundred 32-bit channels at full size, a few at once. */
const BYTES_PER_PIXEL = 3000;
/** Attention: eight heads, two batches of guidance, 32-bit floats. */
const BYTES_PER_PAIR = 64;

/** Sizes that fit the memory, the native size first. */
export function sizesWithin(facts: ImageFacts, bytes: number): ImageSize[] {
  return facts.sizes.filter((size) => imageJobBytes(facts, size) <= bytes);
}

export function sizeText({ width, height }: ImageSize): string {
  return `${width}x${height}`;
}
