/**
 * Frames of sealed requests and answers (end-to-end mode): `flags u8 ‖ u24be length ‖ ciphertext`.
 *
 * A frame's sequence number is its position, from 0, not counting keep-alives. Number and final flag are authenticated, so a
 * missing, repeated, reordered or truncated frame is an error.
 */
import { concatBytes } from '../bytes.js';
import type { E2eCrypto } from './crypto.js';
import { E2eError } from './error.js';
import { E2E_FRAME_HEADER_BYTES, E2E_TAG_BYTES, MAX_E2E_ABORT_BYTES, MAX_E2E_FRAME_BYTES } from './limits.js';

/** Flag of the last sealed frame. */
export const E2E_FINAL = 0x01;
/** Flags of an abort frame: clear text, by the coordinator, in answers only. */
export const E2E_ABORT = 0x80;

/** Limits of {@link E2eFrameOpener.opensLater}: positions to try, and bytes to decrypt in all tries together. */
const MAX_LATER_FRAMES = 64;
const MAX_LATER_BYTES = 8 * 1024 * 1024;

/** The highest 32-bit sequence number is never used. */
const SEQUENCE_END = 0xffff_ffff;

/** AEAD key and base nonce of one direction. */
export interface E2eFrameSecret {
  /** 32 bytes. */
  readonly key: Uint8Array;
  /** 12 bytes. */
  readonly baseNonce: Uint8Array;
}

export function encodeE2eFrame(flags: number, payload: Uint8Array): Uint8Array {
  const { length } = payload;
  return concatBytes(Uint8Array.of(flags, length >>> 16, length >>> 8, length), payload);
}

/** Seals consecutive frames. */
export class E2eFrameSealer {
  readonly #crypto: E2eCrypto;
  readonly #secret: E2eFrameSecret;
  #next = 0;

  constructor(crypto: E2eCrypto, secret: E2eFrameSecret) {
    this.#crypto = crypto;
    this.#secret = secret;
  }

  /** Encoded frame. Throws E2eError `exhausted`. */
  seal(plaintext: Uint8Array, isFinal: boolean): Uint8Array {
    const sequence = requireSequence(this.#next++);
    const flags = isFinal ? E2E_FINAL : 0;
    const { key, baseNonce } = this.#secret;
    return encodeE2eFrame(flags, this.#crypto.aesGcmSeal(key, nonceOf(baseNonce, sequence), aadOf(sequence, flags), plaintext));
  }
}

/** Opens consecutive frames. */
export class E2eFrameOpener {
  readonly #crypto: E2eCrypto;
  readonly #secret: E2eFrameSecret;
  #next = 0;

  constructor(crypto: E2eCrypto, secret: E2eFrameSecret) {
    this.#crypto = crypto;
    this.#secret = secret;
  }

  /** Plaintext of the next frame. Throws E2eError `open_failed`, `exhausted`. */
  open(sealed: Uint8Array, isFinal: boolean): Uint8Array {
    const sequence = requireSequence(this.#next);
    const plaintext = this.#openAt(sequence, sealed, isFinal);
    if (plaintext === null) throw new E2eError('open_failed', `frame ${sequence} does not open: other key, position or answer, or altered`);
    this.#next++;
    return plaintext;
  }

  /** Whether the frame opens at a later position, so that frames before it are missing. Tries only some positions. */
  opensLater(sealed: Uint8Array, isFinal: boolean): boolean {
    const count = Math.min(MAX_LATER_FRAMES, Math.floor(MAX_LATER_BYTES / Math.max(sealed.length - E2E_TAG_BYTES, 1)));
    for (let sequence = this.#next + 1; sequence <= Math.min(this.#next + count, SEQUENCE_END - 1); sequence++) {
      if (this.#openAt(sequence, sealed, isFinal) !== null) return true;
    }
    return false;
  }

  #openAt(sequence: number, sealed: Uint8Array, isFinal: boolean): Uint8Array | null {
    const { key, baseNonce } = this.#secret;
    return this.#crypto.aesGcmOpen(key, nonceOf(baseNonce, sequence), aadOf(sequence, isFinal ? E2E_FINAL : 0), sealed);
  }
}

/** Callbacks of {@link E2eFrameWalker}. A payload may arrive in several pieces. */
export interface E2eFrameVisitor {
  onHeader(flags: number, length: number, header: Uint8Array): void;
  onPayload(piece: Uint8Array): void;
  onEnd(): void;
}

/** Parses frames incrementally, without keys. Checks flags and lengths, and that no byte follows the final or abort frame. */
export class E2eFrameWalker {
  readonly #visitor: E2eFrameVisitor;
  readonly #direction: 'request' | 'answer';
  readonly #header = new Uint8Array(E2E_FRAME_HEADER_BYTES);
  #headerBytes = 0;
  #missing = 0;
  #isOver = false;

  constructor(direction: 'request' | 'answer', visitor: E2eFrameVisitor) {
    this.#direction = direction;
    this.#visitor = visitor;
  }

  get isAtFrameBoundary(): boolean {
    return this.#headerBytes === 0;
  }

  /** Throws E2eError `malformed`, `too_large`, `after_final`, and errors of the visitor. */
  push(bytes: Uint8Array): void {
    let offset = 0;
    while (offset < bytes.length) {
      if (this.#headerBytes < E2E_FRAME_HEADER_BYTES) {
        if (this.#headerBytes === 0 && this.#isOver) throw new E2eError('after_final', 'bytes follow the last frame');
        this.#header[this.#headerBytes++] = bytes[offset++] as number;
        if (this.#headerBytes < E2E_FRAME_HEADER_BYTES) continue;
        this.#begin();
      } else {
        const piece = bytes.subarray(offset, offset + this.#missing);
        this.#missing -= piece.length;
        offset += piece.length;
        this.#visitor.onPayload(piece);
      }
      if (this.#missing > 0) continue;
      this.#headerBytes = 0;
      this.#visitor.onEnd();
    }
  }

  #begin(): void {
    const [flags, a, b, c] = this.#header as unknown as readonly [number, number, number, number];
    const length = (a << 16) | (b << 8) | c;
    checkFrame(this.#direction, flags, length);
    this.#isOver = flags !== 0;
    this.#missing = length;
    this.#visitor.onHeader(flags, length, this.#header.slice());
  }
}

function checkFrame(direction: 'request' | 'answer', flags: number, length: number): void {
  const isSealed = flags === 0 || flags === E2E_FINAL;
  if (!isSealed && !(direction === 'answer' && flags === E2E_ABORT)) throw new E2eError('malformed', `unknown frame flags ${flags}`);
  if (length > (isSealed ? MAX_E2E_FRAME_BYTES : MAX_E2E_ABORT_BYTES))
    throw new E2eError('too_large', `a frame of ${length} bytes is over the cap`);
  const isKeepAlive = direction === 'answer' && flags === 0 && length === 0;
  if (isSealed && !isKeepAlive && length < E2E_TAG_BYTES) throw new E2eError('malformed', 'a frame is shorter than its tag');
}

function requireSequence(sequence: number): number {
  if (sequence >= SEQUENCE_END) throw new E2eError('exhausted', 'the sequence numbers of this key are used up');
  return sequence;
}

/** Associated data: u32be sequence number ‖ flags. */
function aadOf(sequence: number, flags: number): Uint8Array {
  return Uint8Array.of(sequence >>> 24, sequence >>> 16, sequence >>> 8, sequence, flags);
}

/** Base nonce XOR sequence number, right-aligned (RFC 9180 section 5.2). */
function nonceOf(baseNonce: Uint8Array, sequence: number): Uint8Array {
  const nonce = baseNonce.slice();
  for (let i = 0; i < 4; i++) nonce[11 - i] = (nonce[11 - i] as number) ^ ((sequence >>> (8 * i)) & 0xff);
  return nonce;
}
