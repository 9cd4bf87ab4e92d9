/** An image as it lies on the disk: AES-256-GCM under the key of its address, bound to the name it is stored under. */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { utf8 } from '@inference/protocol';

const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** What a sealed image has more than the image. */
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

/** The image, or null when a byte of what was sealed is another one now. */
export function openImage(sealed: Uint8Array, { key, storedName }: Sealing): Uint8Array | null {
  if (sealed.length < SEALING_BYTES) return null;
  const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, NONCE_BYTES));
  decipher.setAAD(utf8(storedName));
  decipher.setAuthTag(sealed.subarray(sealed.length - TAG_BYTES));
  try {
    return Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES, sealed.length - TAG_BYTES)), decipher.final()]);
  } catch {
    // The one thing that can be wrong with bytes of a good length.
    return null;
  }
}
