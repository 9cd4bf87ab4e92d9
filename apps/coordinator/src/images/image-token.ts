/**
 * Tokens in image URLs (`<token>.<extension>`), and the encryption of images.
 *
 * Token: base64url of 32 random bytes ‖ expiry in seconds u40 ‖ file type u8 ‖ 16 bytes of HMAC-SHA-256 over the preceding bytes.
 *
 * The image's key derives from the random bytes. The HMAC distinguishes expired tokens from forged tokens.
 */
import { createCipheriv, createDecipheriv, createHash, createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto';
import type { ImageRequest } from '@inference/formats';
import { utf8 } from '@inference/protocol';

export type ImageFileType = ImageRequest['format'];

/** Decoded token. */
export interface ImageToken {
  /** Hash of the random bytes: identifies the image without revealing its key. */
  readonly imageId: string;
  readonly key: Uint8Array;
  readonly fileType: ImageFileType;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
}

/** File name extensions in URLs. */
const EXTENSIONS = { png: 'png', jpeg: 'jpg', webp: 'webp' } as const satisfies Record<ImageFileType, string>;
const FILE_TYPES: readonly ImageFileType[] = ['png', 'jpeg', 'webp'];
const SECRET_BYTES = 32;
const PAYLOAD_BYTES = SECRET_BYTES + 6;
const MAC_BYTES = 16;
const FILE_NAME = /^([A-Za-z0-9_-]{72})\.(png|jpg|webp)$/;

/** Last path segment of a new image URL. `expiresAt` in milliseconds since 1970, rounded up to a second. */
export function newImageFileName(macKey: Uint8Array, fileType: ImageFileType, expiresAt: number): string {
  const payload = Buffer.alloc(PAYLOAD_BYTES);
  randomBytes(SECRET_BYTES).copy(payload);
  payload.writeUIntBE(Math.ceil(expiresAt / 1000), SECRET_BYTES, 5);
  payload.writeUInt8(FILE_TYPES.indexOf(fileType), SECRET_BYTES + 5);
  return `${Buffer.concat([payload, macOf(macKey, payload)]).toString('base64url')}.${EXTENSIONS[fileType]}`;
}

/** Decodes the last path segment of an image URL. Null: not issued under this key. */
export function readImageFileName(macKey: Uint8Array, fileName: string): ImageToken | null {
  const [, text = '', extension] = FILE_NAME.exec(fileName) ?? [];
  const bytes = Buffer.from(text, 'base64url');
  if (bytes.length !== PAYLOAD_BYTES + MAC_BYTES) return null;
  const payload = bytes.subarray(0, PAYLOAD_BYTES);
  if (!timingSafeEqual(macOf(macKey, payload), bytes.subarray(PAYLOAD_BYTES))) return null;
  const fileType = FILE_TYPES[payload.readUInt8(SECRET_BYTES + 5)];
  if (fileType === undefined || EXTENSIONS[fileType] !== extension) return null;
  const secret = payload.subarray(0, SECRET_BYTES);
  return {
    imageId: createHash('sha256').update('inference/image-name/v1\0').update(secret).digest('hex'),
    key: new Uint8Array(hkdfSync('sha256', secret, new Uint8Array(), 'inference/image-key/v1', 32)),
    fileType,
    expiresAt: 1000 * payload.readUIntBE(SECRET_BYTES, 5),
  };
}

/** The label says "address", an earlier word for the token; another label would invalidate the URLs in use. */
function macOf(macKey: Uint8Array, payload: Uint8Array): Buffer {
  return createHmac('sha256', macKey).update('inference/image-address/v1\0').update(payload).digest().subarray(0, MAC_BYTES);
}

const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** Bytes added by encryption. */
export const ENCRYPTION_OVERHEAD_BYTES = NONCE_BYTES + TAG_BYTES;

export interface ImageKey {
  readonly key: Uint8Array;
  readonly imageId: string;
}

/** Nonce, ciphertext, tag. */
export function encryptImage(image: Uint8Array, { key, imageId }: ImageKey): Uint8Array {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', key, nonce);
  cipher.setAAD(utf8(imageId));
  return Buffer.concat([nonce, cipher.update(image), cipher.final(), cipher.getAuthTag()]);
}

/** The image, or null when any encrypted byte has changed. */
export function decryptImage(encrypted: Uint8Array, { key, imageId }: ImageKey): Uint8Array | null {
  if (encrypted.length < ENCRYPTION_OVERHEAD_BYTES) return null;
  const decipher = createDecipheriv('aes-256-gcm', key, encrypted.subarray(0, NONCE_BYTES));
  decipher.setAAD(utf8(imageId));
  decipher.setAuthTag(encrypted.subarray(encrypted.length - TAG_BYTES));
  try {
    return Buffer.concat([decipher.update(encrypted.subarray(NONCE_BYTES, encrypted.length - TAG_BYTES)), decipher.final()]);
  } catch {
    // With a valid length, only authentication can fail.
    return null;
  }
}
