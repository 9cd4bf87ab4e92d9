/**
 * AES-256-GCM for a sequence of messages: the nonce is a base XOR the message's number (RFC 9180 section 5.2).
 *
 * Separate classes seal and open, so a receiver cannot seal with the sender's key, which would reuse a nonce.
 */
import { createCipheriv, createDecipheriv, createSecretKey, type KeyObject } from 'node:crypto';
import { concatBytes } from '../bytes.js';
import { plainView } from './digest.js';
import { SealingError } from './sealing-error.js';

export const KEY_BYTES = 32;
export const NONCE_BYTES = 12;
export const TAG_BYTES = 16;

/** Frames have 32-bit sequence numbers. The highest number is never used. */
const SEQUENCE_END = 0xffff_ffff;

export interface AeadSecret {
  /** 32 bytes. */
  readonly key: Uint8Array;
  /** 12 bytes. */
  readonly baseNonce: Uint8Array;
}

/** Ciphertext and tag, separate for callers that prepend their own header. */
export interface SealedParts {
  readonly ciphertext: Uint8Array;
  readonly tag: Uint8Array;
}

/** Opens ciphertext ‖ tag. Returns null if the input is shorter than a tag, or the tag does not verify. */
export function openAesGcm(key: KeyObject | Uint8Array, nonce: Uint8Array, aad: Uint8Array, sealed: Uint8Array): Uint8Array | null {
  const split = sealed.length - TAG_BYTES;
  if (split < 0) return null;
  const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES });
  decipher.setAuthTag(sealed.subarray(split));
  decipher.setAAD(aad);
  const plaintext = plainView(decipher.update(sealed.subarray(0, split)));
  try {
    decipher.final();
  } catch {
    return null;
  }
  return plaintext;
}

/** Computes the nonces of one key. The caller advances `next` after each successful use. */
class NonceSequence {
  readonly #base: Uint8Array;
  readonly #nonce: Uint8Array;
  next: number;

  constructor(baseNonce: Uint8Array, first: number) {
    if (baseNonce.length !== NONCE_BYTES) throw new RangeError('an AES-GCM nonce has 12 bytes here');
    this.#base = baseNonce.slice();
    this.#nonce = baseNonce.slice();
    this.next = first;
  }

  /** Nonce for sequence number `next`, in a buffer that the next call overwrites. Throws SealingError `exhausted`. */
  current(): Uint8Array {
    if (this.next >= SEQUENCE_END) throw new SealingError('exhausted', 'the sequence numbers of this key are used up');
    for (let i = 0; i < 4; i++) this.#nonce[11 - i] = (this.#base[11 - i] as number) ^ ((this.next >>> (8 * i)) & 0xff);
    return this.#nonce;
  }
}

export class SealingSequence {
  readonly #key: KeyObject;
  readonly #nonces: NonceSequence;

  constructor(secret: AeadSecret, first = 0) {
    this.#key = aesKey(secret.key);
    this.#nonces = new NonceSequence(secret.baseNonce, first);
  }

  /** Sequence number of the next message. */
  get next(): number {
    return this.#nonces.next;
  }

  /** Seals the next message. Throws SealingError `exhausted`. */
  sealParts(aad: Uint8Array, plaintext: Uint8Array): SealedParts {
    const cipher = createCipheriv('aes-256-gcm', this.#key, this.#nonces.current(), { authTagLength: TAG_BYTES });
    this.#nonces.next++;
    cipher.setAAD(aad);
    const ciphertext = plainView(cipher.update(plaintext));
    cipher.final();
    return { ciphertext, tag: plainView(cipher.getAuthTag()) };
  }

  /** Like {@link sealParts}, as ciphertext ‖ tag. */
  seal(aad: Uint8Array, plaintext: Uint8Array): Uint8Array {
    const { ciphertext, tag } = this.sealParts(aad, plaintext);
    return concatBytes(ciphertext, tag);
  }
}

export class OpeningSequence {
  readonly #key: KeyObject;
  readonly #nonces: NonceSequence;

  constructor(secret: AeadSecret, first = 0) {
    this.#key = aesKey(secret.key);
    this.#nonces = new NonceSequence(secret.baseNonce, first);
  }

  /** Sequence number of the next message. A failed `open` does not change it. */
  get next(): number {
    return this.#nonces.next;
  }

  /** Plaintext of ciphertext ‖ tag. Throws SealingError `open_failed` or `exhausted`. */
  open(aad: Uint8Array, sealed: Uint8Array): Uint8Array {
    if (sealed.length < TAG_BYTES) throw new SealingError('open_failed', 'sealed bytes are shorter than their tag');
    const plaintext = openAesGcm(this.#key, this.#nonces.current(), aad, sealed);
    if (plaintext === null) throw new SealingError('open_failed', 'sealed bytes do not open: other key, other context, or altered');
    this.#nonces.next++;
    return plaintext;
  }
}

function aesKey(key: Uint8Array): KeyObject {
  if (key.length !== KEY_BYTES) throw new RangeError('an AES-256 key has 32 bytes');
  return createSecretKey(key);
}
