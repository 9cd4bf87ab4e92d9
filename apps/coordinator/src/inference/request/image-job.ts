/** What an image job is to be, once it is known for which model: the part of a request that placement, price and checks go by. */
import { type ImageFacts, imageSizeOf, pixelsOf } from '@inference/formats';
import { type ImageOffer, MAX_PLAIN_RESPONSE_BYTES, maxImageBytes } from '@inference/protocol';

export interface ImageJob extends ImageFacts {
  /** `<width>x<height>` of every image. Machines on which the request would come to another one are not asked. */
  readonly pixels: string;
  /** Where the images will be fetched, one address for each; null where the answer holds them. */
  readonly urls: readonly string[] | null;
  /** How long the job may wait for somebody who makes images, in milliseconds since 1970. */
  readonly waitUntil: number;
}

/** Pixels that are as much work for the scheduler as one token, so that machines are measured and compared as they are for text. */
const PIXELS_PER_TOKEN = 1024;
/** Body of an answer, beside the images that it may hold. */
const BODY_BYTES = 8 * 1024;

/** Whether a machine makes what is wanted, by its own offer. */
export function makesImages(offer: ImageOffer | undefined, { size, count }: ImageFacts, pixels: string): boolean {
  return offer !== undefined && offer.max_images >= count && imageSizeOf(size, offer.sizes) === pixels;
}

/** The images as tokens. */
export function imageTokens({ count, pixels }: ImageJob): number {
  const { width, height } = pixelsOf(pixels);
  return count * Math.max(1, Math.round((width * height) / PIXELS_PER_TOKEN));
}

/** Pixels of one image. */
export function pixelCount(pixels: string): number {
  const { width, height } = pixelsOf(pixels);
  return width * height;
}

/** Most bytes of one image. */
export function maxBytesOf(pixels: string): number {
  const { width, height } = pixelsOf(pixels);
  return maxImageBytes(width, height);
}

/** Most bytes of an answer's body; null where it would hold more than an answer may have. */
export function maxBodyBytes({ count, pixels, delivery }: Pick<ImageJob, 'count' | 'pixels' | 'delivery'>): number | null {
  if (delivery === 'url') return BODY_BYTES;
  const bytes = BODY_BYTES + count * 4 * Math.ceil(maxBytesOf(pixels) / 3);
  return bytes > MAX_PLAIN_RESPONSE_BYTES ? null : bytes;
}
