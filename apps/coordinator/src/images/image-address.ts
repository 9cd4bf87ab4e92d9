/**
 * Addresses under which images can be fetched for a while. An address is a secret of its own: it holds the key of its image,
 * and nothing else does. It also says when it ends, under a code that only this coordinator can make, so that an old address is
 * told from an invented one for good, without anything being remembered of it.
 *
 *   32 random bytes ‖ end in seconds u40 ‖ format u8 ‖ first 16 bytes of HMAC-SHA-256 over what stands before, in base64url
 */
import { createHash, createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto';
import type { ImageRequest } from '@inference/formats';

export type ImageFileFormat = ImageRequest['format'];

/** What an address comes to. */
export interface ImageAddress {
  /** Of the file that holds the image, sealed: a hash, from which nothing leads back to the key. */
  readonly storedName: string;
  readonly key: Uint8Array;
  readonly format: ImageFileFormat;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
}

/** Of the last part of an address. */
const EXTENSIONS = { png: 'png', jpeg: 'jpg', webp: 'webp' } as const satisfies Record<ImageFileFormat, string>;
const FORMATS: readonly ImageFileFormat[] = ['png', 'jpeg', 'webp'];
const SECRET_BYTES = 32;
const CODED_BYTES = SECRET_BYTES + 6;
const CODE_BYTES = 16;
const SHAPE = /^([A-Za-z0-9_-]{72})\.(png|jpg|webp)$/;

/** A new file name, the last part of an address. `expiresAt` in milliseconds, rounded up to a second. */
export function newImageFile(codeKey: Uint8Array, format: ImageFileFormat, expiresAt: number): string {
  const coded = Buffer.alloc(CODED_BYTES);
  randomBytes(SECRET_BYTES).copy(coded);
  coded.writeUIntBE(Math.ceil(expiresAt / 1000), SECRET_BYTES, 5);
  coded.writeUInt8(FORMATS.indexOf(format), SECRET_BYTES + 5);
  return `${Buffer.concat([coded, codeOf(codeKey, coded)]).toString('base64url')}.${EXTENSIONS[format]}`;
}

/** What a file name comes to; null when this coordinator never made it. */
export function readImageFile(codeKey: Uint8Array, file: string): ImageAddress | null {
  const [, text = '', extension] = SHAPE.exec(file) ?? [];
  const bytes = Buffer.from(text, 'base64url');
  if (bytes.length !== CODED_BYTES + CODE_BYTES) return null;
  const coded = bytes.subarray(0, CODED_BYTES);
  if (!timingSafeEqual(codeOf(codeKey, coded), bytes.subarray(CODED_BYTES))) return null;
  const format = FORMATS[coded.readUInt8(SECRET_BYTES + 5)];
  if (format === undefined || EXTENSIONS[format] !== extension) return null;
  const secret = coded.subarray(0, SECRET_BYTES);
  return {
    storedName: createHash('sha256').update('inference/image-name/v1\0').update(secret).digest('hex'),
    key: new Uint8Array(hkdfSync('sha256', secret, new Uint8Array(), 'inference/image-key/v1', 32)),
    format,
    expiresAt: 1000 * coded.readUIntBE(SECRET_BYTES, 5),
  };
}

function codeOf(codeKey: Uint8Array, coded: Uint8Array): Buffer {
  return createHmac('sha256', codeKey).update('inference/image-address/v1\0').update(coded).digest().subarray(0, CODE_BYTES);
}
