/**
 * Plaintext of a provider's response to `/v1/images/generations` in plain mode: image parts, then the JSON body.
 *
 *   offset 0  kind    u8   0 = body, 1 = image
 *   offset 1  index   u8   image index from 0; zero for the body
 *   offset 2  length  u32  big endian
 *   offset 6  bytes
 *
 * Images come first, in order, then exactly one body. The response signature covers only the body. A part may span frames.
 */
import { concatBytes } from './bytes.js';
import { MAX_IMAGES } from './wire/limits.js';

export const IMAGE_PART_HEADER_BYTES = 6;

const BODY = 0;
const IMAGE = 1;

/** Why the reader rejected the parts. */
export type ImagePartsProblem =
  | 'unknown_kind'
  | 'wrong_index'
  | 'too_many_images'
  | 'too_few_images'
  | 'empty'
  | 'image_too_large'
  | 'body_too_large'
  | 'after_body'
  | 'cut_off';

export class ImagePartsError extends Error {
  constructor(readonly problem: ImagePartsProblem) {
    super(`image parts: ${problem}`);
    this.name = 'ImagePartsError';
  }
}

/** Maximum bytes of an image of this size, in any format: four per pixel plus headers. */
export function maxImageBytes(width: number, height: number): number {
  return 4 * width * height + 65_536;
}

/** Header of an image part; `length` image bytes follow. */
export function imagePartHeader(index: number, length: number): Uint8Array {
  return partHeader(IMAGE, index, length);
}

/** Header of the body part; `length` body bytes follow and end the response. */
export function bodyPartHeader(length: number): Uint8Array {
  return partHeader(BODY, 0, length);
}

/** Encodes a whole response as consecutive pieces. Only for tests. `images` is empty if the body embeds the images, else at most {@link MAX_IMAGES}. */
export function encodeImageParts(images: readonly Uint8Array[], body: Uint8Array): Uint8Array[] {
  return [...images.flatMap((image, index) => [imagePartHeader(index, image.length), image]), bodyPartHeader(body.length), body];
}

/** Limits that a reader enforces. */
export interface ImagePartsBounds {
  /** Exact number of image parts; 0 if the body embeds the images. */
  readonly images: number;
  readonly maxImageBytes: number;
  readonly maxBodyBytes: number;
}

export interface ImageParts {
  readonly images: readonly Uint8Array[];
  readonly body: Uint8Array;
}

/** Reads parts incrementally. Rejects an excessive length as soon as the part's header arrives, which bounds memory. */
export class ImagePartsReader {
  readonly #bounds: ImagePartsBounds;
  readonly #header = new Uint8Array(IMAGE_PART_HEADER_BYTES);
  #headerBytes = 0;
  /** Remaining bytes of the current part. */
  #missing = 0;
  #pieces: Uint8Array[] = [];
  readonly #images: Uint8Array[] = [];
  #body: Uint8Array | null = null;

  constructor(bounds: ImagePartsBounds) {
    this.#bounds = bounds;
  }

  /** Copies and reads the next bytes. Throws {@link ImagePartsError}; the reader is unusable afterwards. */
  push(bytes: Uint8Array): void {
    let offset = 0;
    while (offset < bytes.length) {
      if (this.#body !== null) throw new ImagePartsError('after_body');
      if (this.#headerBytes < IMAGE_PART_HEADER_BYTES) {
        this.#header[this.#headerBytes++] = bytes[offset++] as number;
        if (this.#headerBytes === IMAGE_PART_HEADER_BYTES) this.#missing = this.#lengthOfPart();
        continue;
      }
      const piece = bytes.slice(offset, offset + this.#missing);
      this.#pieces.push(piece);
      offset += piece.length;
      this.#missing -= piece.length;
      if (this.#missing === 0) this.#endPart();
    }
  }

  /** Call after the last byte. Throws {@link ImagePartsError} `cut_off` if the body is missing or incomplete. */
  end(): ImageParts {
    if (this.#body === null) throw new ImagePartsError('cut_off');
    return { images: this.#images, body: this.#body };
  }

  #lengthOfPart(): number {
    const [kind, index] = this.#header;
    const length = new DataView(this.#header.buffer).getUint32(2);
    if (kind !== BODY && kind !== IMAGE) throw new ImagePartsError('unknown_kind');
    if (length === 0) throw new ImagePartsError('empty');
    if (kind === IMAGE) {
      if (this.#images.length >= this.#bounds.images) throw new ImagePartsError('too_many_images');
      if (index !== this.#images.length) throw new ImagePartsError('wrong_index');
      if (length > this.#bounds.maxImageBytes) throw new ImagePartsError('image_too_large');
    } else {
      if (index !== 0) throw new ImagePartsError('wrong_index');
      if (this.#images.length < this.#bounds.images) throw new ImagePartsError('too_few_images');
      if (length > this.#bounds.maxBodyBytes) throw new ImagePartsError('body_too_large');
    }
    return length;
  }

  #endPart(): void {
    const bytes = concatBytes(...this.#pieces);
    this.#pieces = [];
    this.#headerBytes = 0;
    if (this.#header[0] === IMAGE) this.#images.push(bytes);
    else this.#body = bytes;
  }
}

function partHeader(kind: number, index: number, length: number): Uint8Array {
  if (!Number.isInteger(index) || index < 0 || index >= MAX_IMAGES) throw new RangeError(`there is no image ${index} in an answer`);
  if (!Number.isInteger(length) || length < 1 || length > 0xffff_ffff) throw new RangeError(`a part of ${length} bytes cannot be written`);
  const header = new Uint8Array(IMAGE_PART_HEADER_BYTES);
  header[0] = kind;
  header[1] = index;
  new DataView(header.buffer).setUint32(2, length);
  return header;
}
