/** `E2eAnswerMeter` checks, hashes and measures a sealed answer while the coordinator, which has no key, relays it. */
import { toHex } from '../bytes.js';
import type { E2eCrypto, Sha256Stream } from './crypto.js';
import { E2eError } from './error.js';
import { E2E_ABORT, E2E_FINAL, E2eFrameWalker } from './frames.js';
import { E2E_RESPONSE_NONCE_BYTES, E2E_TAG_BYTES } from './limits.js';

/** Retains no bytes of the answer. Unusable after an error. */
export class E2eAnswerMeter {
  readonly #walker: E2eFrameWalker;
  readonly #hash: Sha256Stream;
  /** Received bytes of the response nonce. */
  #nonceBytes = 0;
  /** Whether the current frame is the final one. */
  #isFinalFrame = false;
  #isComplete = false;
  #plaintextBytes = 0;
  #contentBytes = 0;
  #sealedSha256: string | null = null;

  constructor(crypto: E2eCrypto) {
    this.#hash = crypto.createSha256();
    this.#walker = new E2eFrameWalker('answer', {
      onHeader: (flags, length, header) => this.#header(flags, length, header),
      onPayload: (piece) => {
        if (this.#isFinalFrame) return;
        this.#hash.update(piece);
        this.#contentBytes += piece.length;
      },
      onEnd: () => {
        this.#isComplete = this.#isFinalFrame;
      },
    });
  }

  /** Whether the whole final frame arrived. */
  get isFinal(): boolean {
    return this.#isComplete;
  }

  /** Whether a keep-alive or an abort may be inserted here. */
  get isAtFrameBoundary(): boolean {
    return this.#nonceBytes === E2E_RESPONSE_NONCE_BYTES && this.#walker.isAtFrameBoundary;
  }

  /** Plaintext bytes so far, with padding, without the final frame. Upper bound for the receipt's `response_bytes`. */
  get plaintextBytes(): number {
    return this.#plaintextBytes;
  }

  /** Bytes before the final frame, including keep-alives. */
  get contentBytes(): number {
    return this.#contentBytes;
  }

  /** Lowercase hex SHA-256 of all bytes before the final frame, without keep-alives; null until that frame begins. */
  get sealedSha256(): string | null {
    return this.#sealedSha256;
  }

  /** Throws E2eError `malformed` (also on an abort frame, which providers never send), `too_large`, `after_final`. */
  push(bytes: Uint8Array): void {
    const nonce = bytes.subarray(0, E2E_RESPONSE_NONCE_BYTES - this.#nonceBytes);
    if (nonce.length > 0) this.#hash.update(nonce);
    this.#nonceBytes += nonce.length;
    this.#contentBytes += nonce.length;
    this.#walker.push(bytes.subarray(nonce.length));
  }

  /** Throws E2eError `truncated` without a complete final frame. */
  end(): void {
    if (!this.isFinal) throw new E2eError('truncated', 'the answer ends before its final frame does');
  }

  #header(flags: number, length: number, header: Uint8Array): void {
    if (flags === E2E_ABORT) throw new E2eError('malformed', 'an abort frame from a provider');
    this.#isFinalFrame = flags === E2E_FINAL;
    if (!this.#isFinalFrame) this.#contentBytes += header.length;
    if (length === 0) return;
    if (this.#isFinalFrame) this.#sealedSha256 = toHex(this.#hash.digest());
    else {
      this.#hash.update(header);
      this.#plaintextBytes += length - E2E_TAG_BYTES;
    }
  }
}
