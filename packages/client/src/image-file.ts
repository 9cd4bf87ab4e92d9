/** Reads an image file for a request. */
import { open } from 'node:fs/promises';
import { MAX_INPUT_IMAGE_BYTES } from '@inference/protocol';
import { type ImageData, ImageError, imageFromBytes } from './images/image-data.js';

/**
 * Reads a PNG, JPEG, WebP or GIF file of at most 5 MiB.
 *
 * @throws {ImageError} The file is too large or not such an image. Errors of the file system pass through.
 */
export async function imageFromFile(path: string | URL): Promise<ImageData> {
  const file = await open(path);
  try {
    const { size } = await file.stat();
    if (size > MAX_INPUT_IMAGE_BYTES)
      throw new ImageError(`An image may have at most ${MAX_INPUT_IMAGE_BYTES} bytes; this one has ${size}.`);
    return imageFromBytes(new Uint8Array(await file.readFile()));
  } finally {
    await file.close();
  }
}
