/**
 * `inspectImage` checks whether bytes are an image of the requested format and size. Decodes all pixels, off the main thread.
 *
 * Bytes reach sharp's library only after a check of their first bytes, so a provider can reach no more than three of its decoders.
 */
import type { ImageRequest } from '@inference/formats';
import sharp from 'sharp';
import { Semaphore } from '../semaphore.js';

interface ExpectedImage {
  readonly format: ImageRequest['format'];
  /** Pixels. */
  readonly width: number;
  readonly height: number;
}

type ImageProblem = 'image.unreadable' | 'image.format' | 'image.size';

// Keeps no image data in memory after a check.
sharp.cache(false);

const decodeSlots = new Semaphore(2);

/** Resolves to the first problem, or to null if the image is as requested. */
export function inspectImage(bytes: Uint8Array, expected: ExpectedImage): Promise<ImageProblem | null> {
  const { format, width, height } = expected;
  if (formatOf(bytes) !== format) return Promise.resolve('image.format');
  return decodeSlots.run(async () => {
    const image = sharp(bytes, { limitInputPixels: width * height, failOn: 'truncated', sequentialRead: true, unlimited: false });
    try {
      const found = await image.metadata();
      if (found.width !== width || found.height !== height || (found.pages ?? 1) !== 1) return 'image.size';
      // Only full decoding detects garbage after a valid header.
      await image.raw().toBuffer();
      return null;
    } catch (error) {
      return isPixelLimit(error) ? 'image.size' : 'image.unreadable';
    }
  });
}

function isPixelLimit(error: unknown): boolean {
  return error instanceof Error && error.message.includes('pixel limit');
}

/** Detects the format by the first bytes, as browsers do (WHATWG MIME Sniffing section 6.1). */
function formatOf(bytes: Uint8Array): ImageRequest['format'] | null {
  const begins = (at: number, ...values: readonly number[]): boolean => values.every((value, index) => bytes[at + index] === value);
  if (begins(0, 0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a)) return 'png';
  if (begins(0, 0xff, 0xd8, 0xff)) return 'jpeg';
  if (begins(0, 0x52, 0x49, 0x46, 0x46) && begins(8, 0x57, 0x45, 0x42, 0x50)) return 'webp';
  return null;
}
