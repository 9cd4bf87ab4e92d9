/**
 * Makes and reads the file names in image URLs (`<token>.<extension>`), and encrypts images. Used by `ImageStore`.
 *
 * Token, in base64url: secret (32 random bytes), expiry in seconds (5 bytes), file type (1 byte), MAC (16 bytes).
 *
 * The key and id of an image are derived from the secret. The MAC shows that a token was issued, even if its image is already deleted.
 */
import { createCipheriv, createDecipheriv, createHash, createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto';
import type { ImageRequest } from '@inference/formats';
import { utf8 } from '@inference/protocol';

export type ImageFileType = ImageRequest['format'];

/** Decoded token. Satisfies {@link ImageKey}. */
export interface ImageToken {
  /** Hash of the secret in hexadecimal. Identifies the image without revealing the key. */
  readonly imageId: string;
  /** AES-256 key. */
  readonly key: Uint8Array;
  readonly fileType: ImageFileType;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
}

const EXTENSIONS = { png: 'png', jpeg: 'jpg', webp: 'webp' } as const satisfies Record<ImageFileType, string>;
/** Tokens contain the index of the type. Append only: another order would change issued tokens. */
const FILE_TYPES: readonly ImageFileType[] = ['png', 'jpeg', 'webp'];
const SECRET_BYTES = 32;
const EXPIRY_BYTES = 5;
const FILE_TYPE_OFFSET = SECRET_BYTES + EXPIRY_BYTES;
/** Number of bytes that the MAC covers. */
const PAYLOAD_BYTES = FILE_TYPE_OFFSET + 1;
/** Truncated HMAC-SHA-256 (RFC 2104 section 5). */
const MAC_BYTES = 16;
const FILE_NAME = /^([A-Za-z0-9_-]{72})\.(png|jpg|webp)$/;

/** Last path segment of a new image URL, with a new secret. `expiresAt`, in milliseconds since 1970, is rounded up to a second. */
export function newImageFileName(macKey: Uint8Array, fileType: ImageFileType, expiresAt: number): string {
  const payload = Buffer.alloc(PAYLOAD_BYTES);
  randomBytes(SECRET_BYTES).copy(payload);
  payload.writeUIntBE(Math.ceil(expiresAt / 1000), SECRET_BYTES, EXPIRY_BYTES);
  payload.writeUInt8(FILE_TYPES.indexOf(fileType), FILE_TYPE_OFFSET);
  return `${Buffer.concat([payload, macOf(macKey, payload)]).toString('base64url')}.${EXTENSIONS[fileType]}`;
}

/** Decodes the last path segment of an image URL. Returns null if it was not issued with this MAC key. */
export function readImageFileName(macKey: Uint8Array, fileName: string): ImageToken | null {
  const [, text = '', extension] = FILE_NAME.exec(fileName) ?? [];
  const bytes = Buffer.from(text, 'base64url');
  if (bytes.length !== PAYLOAD_BYTES + MAC_BYTES) return null;
  const payload = bytes.subarray(0, PAYLOAD_BYTES);
  if (!timingSafeEqual(macOf(macKey, payload), bytes.subarray(PAYLOAD_BYTES))) return null;
  const fileType = FILE_TYPES[payload.readUInt8(FILE_TYPE_OFFSET)];
  if (fileType === undefined || EXTENSIONS[fileType] !== extension) return null;
  const secret = payload.subarray(0, SECRET_BYTES);
  return {
    imageId: createHash('sha256').update('inference/image-name/v1\0').update(secret).digest('hex'),
    // A random secret needs no salt (RFC 5869 section 3.1).
    key: new Uint8Array(hkdfSync('sha256', secret, new Uint8Array(), 'inference/image-key/v1', 32)),
    fileType,
    expiresAt: 1000 * payload.readUIntBE(SECRET_BYTES, EXPIRY_BYTES),
  };
}

/** MAC of a payload. The label contains "address", the earlier name of a token. Another label would invalidate issued URLs. */
function macOf(macKey: Uint8Array, payload: Uint8Array): Buffer {
  return createHmac('sha256', macKey).update('inference/image-address/v1\0').update(payload).digest().subarray(0, MAC_BYTES);
}

const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** Number of bytes that encryption adds to an image. */
export const ENCRYPTION_OVERHEAD_BYTES = NONCE_BYTES + TAG_BYTES;

/** Key of an image, with the id to which its ciphertext is bound. */
export interface ImageKey {
  readonly key: Uint8Array;
  readonly imageId: string;
}

/** Encrypts an image with AES-256-GCM, as nonce ‖ ciphertext ‖ tag. */
export function encryptImage(image: Uint8Array, { key, imageId }: ImageKey): Uint8Array {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', key, nonce);
  cipher.setAAD(utf8(imageId));
  return Buffer.concat([nonce, cipher.update(image), cipher.final(), cipher.getAuthTag()]);
}

/** Decrypts an image. Returns null if the bytes were changed, or belong to another image. */
export function decryptImage(encrypted: Uint8Array, { key, imageId }: ImageKey): Uint8Array | null {
  if (encrypted.length < ENCRYPTION_OVERHEAD_BYTES) return null;
  const decipher = createDecipheriv('aes-256-gcm', key, encrypted.subarray(0, NONCE_BYTES));
  decipher.setAAD(utf8(imageId));
  decipher.setAuthTag(encrypted.subarray(encrypted.length - TAG_BYTES));
  try {
    return Buffer.concat([decipher.update(encrypted.subarray(NONCE_BYTES, encrypted.length - TAG_BYTES)), decipher.final()]);
  } catch {
    // The length is valid, so only authentication can fail.
    return null;
  }
}
