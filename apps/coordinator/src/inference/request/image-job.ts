/** `ImageJob`: parameters of an image request that the coordinator can read, with the resolved size. Functions compute work and sizes. */
import { type ImageRequestParams, imageSizeOf, pixelsOf } from '@inference/formats';
import { type ImageOffer, MAX_PLAIN_RESPONSE_BYTES, maxImageBytes } from '@inference/protocol';

export interface ImageJob extends ImageRequestParams {
  /** `<width>x<height>` of every image. Only providers that make exactly this size are used. */
  readonly pixels: string;
  /** Download URLs, one per image. Null if the response contains the images. */
  readonly urls: readonly string[] | null;
  /** End of the wait for an image provider, in milliseconds since 1970. */
  readonly waitUntil: number;
}

/** Pixels that count as one token. The scheduler measures the work of image jobs in tokens, as that of text. */
const PIXELS_PER_TOKEN = 1024;
/** Maximum bytes of a response body without its images. */
const BODY_BYTES = 8 * 1024;

/** Whether an offer includes this number of images in this size. */
export function makesImages(
  offer: ImageOffer | undefined,
  { size, count }: Pick<ImageRequestParams, 'size' | 'count'>,
  pixels: string,
): boolean {
  return offer !== undefined && offer.max_images >= count && imageSizeOf(size, offer.sizes) === pixels;
}

/** Scheduler work of the images, in tokens. */
export function imageTokens({ count, pixels }: ImageJob): number {
  const { width, height } = pixelsOf(pixels);
  return count * Math.max(1, Math.round((width * height) / PIXELS_PER_TOKEN));
}

export function pixelCount(pixels: string): number {
  const { width, height } = pixelsOf(pixels);
  return width * height;
}

/** Maximum file size of one image of this size (`<width>x<height>`), in bytes. */
export function maxBytesOf(pixels: string): number {
  const { width, height } = pixelsOf(pixels);
  return maxImageBytes(width, height);
}

/** Maximum bytes of a response body. Null if above the maximum of any response. */
export function maxBodyBytes({ count, pixels, responseFormat }: Pick<ImageJob, 'count' | 'pixels' | 'responseFormat'>): number | null {
  if (responseFormat === 'url') return BODY_BYTES;
  const bytes = BODY_BYTES + count * 4 * Math.ceil(maxBytesOf(pixels) / 3);
  return bytes > MAX_PLAIN_RESPONSE_BYTES ? null : bytes;
}
