/** From pixels to the bytes of a file. What comes out holds the picture alone: no metadata, no profile, no time. */
import sharp from 'sharp';
import type { ImageEncoding } from '../messages.js';
import type { Picture } from './image-backend.js';

// One thread, and nothing kept: the bytes are the same on every run, and no picture stays in a cache.
sharp.concurrency(1);
sharp.cache(false);

/** `quality` in percent, for JPEG and WebP. */
export async function encodePicture({ rgb, width, height }: Picture, encoding: ImageEncoding, quality: number | null): Promise<Uint8Array> {
  const image = sharp(rgb, { raw: { width, height, channels: 3 } });
  // 0 is no quality that encoders know.
  const chosen = quality === null ? {} : { quality: Math.max(1, quality) };
  switch (encoding) {
    case 'png':
      return await image.png({ compressionLevel: 6 }).toBuffer();
    case 'jpeg':
      return await image.jpeg(chosen).toBuffer();
    case 'webp':
      return await image.webp(chosen).toBuffer();
    default:
      return encoding satisfies never;
  }
}

/** Pixels of an encoded picture of any kind. Throws when it is none, or larger than `mostPixels`. */
export async function decodePicture(bytes: Uint8Array, maxPixels: number): Promise<Picture> {
  const { data, info } = await sharp(bytes, { limitInputPixels: maxPixels })
    .flatten()
    .toColourspace('srgb')
    .removeAlpha()
    .raw()
    .toBuffer({ resolveWithObject: true });
  return { width: info.width, height: info.height, rgb: data };
}
