/** Converts image bytes to the forms that requests contain: base64 or a `data:` URL. */
import { type InputImageType, imageTypeOf } from '@inference/formats';
import { MAX_INPUT_IMAGE_BYTES, toBase64 } from '@inference/protocol';

export interface ImageData {
  readonly mediaType: InputImageType;
  /** Padded base64, for the Messages format. */
  readonly base64: string;
  /** `data:` address, for chat completions and responses. */
  readonly dataUri: string;
}

/** The image is too large or of an unsupported type. The message does not name the image. */
export class ImageError extends Error {
  override readonly name = 'ImageError';
}

/**
 * Prepares an image for a request. The media type is detected from the content, not taken from a file name.
 *
 * @throws {ImageError} More than 5 MiB, or not PNG, JPEG, WebP or GIF.
 */
export function imageFromBytes(bytes: Uint8Array): ImageData {
  if (bytes.length > MAX_INPUT_IMAGE_BYTES)
    throw new ImageError(`An image may have at most ${MAX_INPUT_IMAGE_BYTES} bytes; this one has ${bytes.length}.`);
  const mediaType = imageTypeOf(bytes);
  if (mediaType === null) throw new ImageError('The data is not a PNG, JPEG, WebP or GIF image.');
  const base64 = toBase64(bytes);
  return { mediaType, base64, dataUri: `data:${mediaType};base64,${base64}` };
}
