/** `decodeBitmap` decodes a client's image file to an RGB bitmap of bounded size, in the vision engine process, which has no keys. */
import { MAX_INPUT_IMAGE_PIXELS, MAX_INPUT_IMAGE_SIDE } from '@inference/protocol';
import sharp from 'sharp';

export interface Bitmap {
  readonly width: number;
  readonly height: number;
  /** Three bytes per pixel. */
  readonly rgb: Uint8Array;
}

/** Maximum pixels of a bitmap, 2048 x 2048, more than projectors use of one image. */
export const MAX_BITMAP_PIXELS = 4_194_304;
/** Maximum time for decoding one file. Files of 40 megapixels usually take a few seconds. */
const MAX_DECODE_SECONDS = 30;
/** Maximum longer side of a bitmap, as a multiple of the shorter one. */
const MAX_ASPECT = 200;

const FORMATS: readonly string[] = ['png', 'jpeg', 'webp', 'gif'];

// One thread per image, and no image stays in memory.
sharp.concurrency(1);
sharp.cache(false);

/**
 * Resolves to null if the file is damaged, animated, too large, too slow to decode, or neither PNG, JPEG, WebP nor GIF.
 *
 * @param scale Factor of both sides, at most 1.
 */
export async function decodeBitmap(file: Uint8Array, scale = 1): Promise<Bitmap | null> {
  try {
    const image = sharp(file, { limitInputPixels: MAX_INPUT_IMAGE_PIXELS, failOn: 'error', pages: 1 });
    const { format, pages = 1, autoOrient } = await image.metadata();
    const { width, height } = autoOrient;
    if (!FORMATS.includes(format) || pages > 1 || Math.max(width, height) > MAX_INPUT_IMAGE_SIDE) return null;
    const fit = scale * Math.min(1, Math.sqrt(MAX_BITMAP_PIXELS / (width * height)));
    const { data, info } = await image
      .autoOrient()
      .flatten({ background: 'white' })
      .resize({ ...boundedSize(width * fit, height * fit), fit: 'fill' })
      .toColourspace('srgb')
      .raw({ depth: 'uchar' })
      .timeout({ seconds: MAX_DECODE_SECONDS })
      .toBuffer({ resolveWithObject: true });
    return info.channels === 3 ? { width: info.width, height: info.height, rgb: data } : null;
  } catch {
    return null;
  }
}

/** Whether the aspect ratio exceeds the maximum, so that `decodeBitmap` would change it. */
export function isThin(width: number, height: number): boolean {
  return Math.max(width, height) > MAX_ASPECT * Math.min(width, height);
}

/** Rounds a size and bounds its aspect ratio, because projectors enlarge thin images enormously. */
function boundedSize(width: number, height: number): { readonly width: number; readonly height: number } {
  const min = Math.max(1, Math.ceil(Math.max(width, height) / MAX_ASPECT));
  return { width: Math.max(min, Math.round(width)), height: Math.max(min, Math.round(height)) };
}
