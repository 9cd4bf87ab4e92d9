/**
 * Temporary image addresses and the encryption under them. An address is a secret: the random bytes derive the key of the image and
 * exist nowhere else. An authentication code of this coordinator covers the expiry time, so expired and invented addresses stay
 * distinguishable without stored state.
 * 32 random bytes ‖ expiry in seconds u40 ‖ format u8 ‖ first 16 bytes of HMAC-SHA-256 over the preceding bytes, in base64url
 */
import { createCipheriv, createDecipheriv, createHash, createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto';
import type { ImageRequest } from '@inference/formats';
import { utf8 } from '@inference/protocol';

export type ImageFileFormat = ImageRequest['format'];

/** Decoded address. */
export interface ImageAddress {
  /** Hash in the name of the encrypted file, from which the key cannot be derived. */
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

/** Decodes a file name; null: not made by this coordinator. */
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

const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** Bytes added by encryption. */
export const SEALING_BYTES = NONCE_BYTES + TAG_BYTES;

export interface Sealing {
  readonly key: Uint8Array;
  readonly storedName: string;
}

/** Nonce, ciphertext, tag. */
export function sealImage(image: Uint8Array, { key, storedName }: Sealing): Uint8Array {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', key, nonce);
  cipher.setAAD(utf8(storedName));
  return Buffer.concat([nonce, cipher.update(image), cipher.final(), cipher.getAuthTag()]);
}

/** The image, or null when any encrypted byte has changed. */
export function openImage(sealed: Uint8Array, { key, storedName }: Sealing): Uint8Array | null {
  if (sealed.length < SEALING_BYTES) return null;
  const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, NONCE_BYTES));
  decipher.setAAD(utf8(storedName));
  decipher.setAuthTag(sealed.subarray(sealed.length - TAG_BYTES));
  try {
    return Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES, sealed.length - TAG_BYTES)), decipher.final()]);
  } catch {
    // With a valid length, only authentication can fail.
    return null;
  }
}
