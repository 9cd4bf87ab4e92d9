/** Encodes and decodes images. Encoded images contain only pixels: no metadata, profile or time. */
import sharp from 'sharp';
import type { ImageEncoding } from '../messages.js';
import type { RawImage } from './image-backend.js';

// One thread and no cache, so that bytes are reproducible and no image stays in memory.
sharp.concurrency(1);
sharp.cache(false);

/** `quality` in percent, for JPEG and WebP. */
export async function encodeImage({ rgb, width, height }: RawImage, encoding: ImageEncoding, quality: number | null): Promise<Uint8Array> {
  const image = sharp(rgb, { raw: { width, height, channels: 3 } });
  // Encoders reject a quality of 0.
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

/** Pixels of an encoded image of any format. Throws for invalid data or more than `maxPixels` pixels. */
export async function decodeImage(bytes: Uint8Array, maxPixels: number): Promise<RawImage> {
  const { data, info } = await sharp(bytes, { limitInputPixels: maxPixels })
    .flatten()
    .toColourspace('srgb')
    .removeAlpha()
    .raw()
    .toBuffer({ resolveWithObject: true });
  return { width: info.width, height: info.height, rgb: data };
}
