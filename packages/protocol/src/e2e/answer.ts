/**
 * Sealed answer of the end-to-end mode: `response nonce (32 random bytes) ‖ frames`. The provider seals, and the client opens.
 *
 * A request is sealed to several providers, its candidates, and one of them answers. The key derives from that candidate's HPKE
 * context and the nonce (RFC 9458 section 4.4).
 *
 * The final frame has only the proof, because the proof's receipt contains the hash of all earlier bytes. Zero-length frames
 * (keep-alive) and frames with flags 0x80 (abort by the coordinator) are neither authenticated nor hashed.
 */
import { concatBytes, toHex, utf8 } from '../bytes.js';
import { type E2eAbort, type E2eProof, e2eKeepAlive, encodeE2eProof, parseE2eAbort } from './answer-json.js';
import type { E2eCrypto, Sha256Stream } from './crypto.js';
import { E2eError } from './error.js';
import { E2E_ABORT, E2E_FINAL, E2eFrameOpener, E2eFrameSealer, type E2eFrameSecret, E2eFrameWalker } from './frames.js';
import { exportSecret, type HpkeContext, hkdfExpandBlock, hkdfExtract } from './hpke.js';
import {
  E2E_CHUNK_BYTES,
  E2E_RESPONSE_NONCE_BYTES,
  MAX_E2E_ANSWER_BODY_BYTES,
  MAX_E2E_ANSWER_HEAD_BYTES,
  MAX_E2E_IMAGE_BYTES,
  MAX_E2E_PROOF_BYTES,
} from './limits.js';
import { type E2ePadding, type E2ePart, E2ePartReader, encodeE2eParts } from './parts.js';

const EXPORT_LABEL = utf8('inference/e2e/v1 response');
const KEY_LABEL = utf8('key');
const NONCE_LABEL = utf8('nonce');
const KEY_BYTES = 32;
const EMPTY: Uint8Array = new Uint8Array(0);

/** The provider's side. Call `start`, then `seal` any number of times, then `sealedSha256` and `finish`. */
export class E2eAnswerSealer {
  readonly #responseNonce: Uint8Array;
  readonly #sealer: E2eFrameSealer;
  readonly #hash: Sha256Stream;
  #state: 'new' | 'open' | 'hashed' | 'finished' = 'new';
  #sealedSha256 = '';
  #responseBytes = 0;

  constructor(crypto: E2eCrypto, context: HpkeContext, enc: Uint8Array) {
    this.#responseNonce = crypto.randomBytes(E2E_RESPONSE_NONCE_BYTES);
    this.#sealer = new E2eFrameSealer(crypto, answerSecret(crypto, context, enc, this.#responseNonce));
    this.#hash = crypto.createSha256();
  }

  /** Bytes of body and image parts so far, for the receipt's `response_bytes`. */
  get responseBytes(): number {
    return this.#responseBytes;
  }

  /** Returns the response nonce, the first bytes of the answer. */
  start(): Uint8Array {
    this.#require('new');
    this.#state = 'open';
    this.#hash.update(this.#responseNonce);
    return this.#responseNonce;
  }

  /** Seals parts and padding into frames. The first part of an answer is the head; `finish` seals the proof. */
  seal(parts: readonly E2ePart[], padding: E2ePadding): Uint8Array {
    this.#require('open');
    for (const { kind, bytes } of parts) {
      if (kind === 'proof') throw new RangeError('the proof belongs to the final frame');
      if (kind !== 'head') this.#responseBytes += bytes.length;
    }
    const plaintext = encodeE2eParts(parts, padding);
    const frames: Uint8Array[] = [];
    for (let at = 0; at < plaintext.length; at += E2E_CHUNK_BYTES) {
      frames.push(this.#sealer.seal(plaintext.subarray(at, at + E2E_CHUNK_BYTES), false));
    }
    const bytes = frames.length === 1 ? (frames[0] as Uint8Array) : concatBytes(...frames);
    this.#hash.update(bytes);
    return bytes;
  }

  keepAlive(): Uint8Array {
    return e2eKeepAlive();
  }

  /** Lowercase hex SHA-256 of all bytes before the final frame, for the receipt. No `seal` is allowed after this call. */
  sealedSha256(): string {
    if (this.#state === 'open') {
      this.#sealedSha256 = toHex(this.#hash.digest());
      this.#state = 'hashed';
    }
    this.#require('hashed');
    return this.#sealedSha256;
  }

  /** Seals the proof into the final frame. Throws E2eError `malformed`, `too_large`. */
  finish(proof: E2eProof): Uint8Array {
    this.#require('hashed');
    const part = encodeE2eProof(proof);
    this.#state = 'finished';
    return this.#sealer.seal(encodeE2eParts([part], 'stream'), true);
  }

  #require(state: 'new' | 'open' | 'hashed'): void {
    if (this.#state !== state) throw new Error(`a sealed answer is ${this.#state}, not ${state}`);
  }
}

/** Result of {@link E2eAnswerOpener.push}. */
export interface E2eOpenedParts {
  /** Complete parts in order, without padding. The first of an answer is its head, the last its proof. */
  readonly parts: readonly E2ePart[];
  /** The abort with which the coordinator ended the answer early; null: none. */
  readonly abort: E2eAbort | null;
}

/** The client's side: opens one candidate's answer incrementally. Buffers at most one frame and one incomplete part. */
export class E2eAnswerOpener {
  readonly #crypto: E2eCrypto;
  readonly #context: HpkeContext;
  readonly #enc: Uint8Array;
  readonly #walker: E2eFrameWalker;
  readonly #hash: Sha256Stream;
  readonly #reader = new E2ePartReader({
    head: MAX_E2E_ANSWER_HEAD_BYTES,
    body: MAX_E2E_ANSWER_BODY_BYTES,
    image: MAX_E2E_IMAGE_BYTES,
    proof: MAX_E2E_PROOF_BYTES,
  });
  #responseNonce: Uint8Array = EMPTY;
  #opener: E2eFrameOpener | null = null;
  #parts: E2ePart[] = [];
  #abort: E2eAbort | null = null;
  // Flags, header, payload length, payload and received payload bytes of the current frame.
  #flags = 0;
  #frameHeader: Uint8Array = EMPTY;
  #length = 0;
  #sealed: Uint8Array = EMPTY;
  #received = 0;
  #hasHead = false;
  #sealedSha256: string | null = null;
  #failure: E2eError | null = null;

  constructor(crypto: E2eCrypto, context: HpkeContext, enc: Uint8Array) {
    this.#crypto = crypto;
    this.#context = context;
    this.#enc = enc;
    this.#hash = crypto.createSha256();
    this.#walker = new E2eFrameWalker('answer', {
      onHeader: (flags, length, header) => {
        this.#flags = flags;
        this.#frameHeader = header;
        this.#length = length;
        this.#sealed = EMPTY;
        this.#received = 0;
      },
      onPayload: (piece) => {
        if (piece.length === this.#length) {
          // A frame within one chunk, the common case, is not copied.
          this.#sealed = piece;
          return;
        }
        if (this.#received === 0) this.#sealed = new Uint8Array(this.#length);
        this.#sealed.set(piece, this.#received);
        this.#received += piece.length;
      },
      onEnd: () => this.#frame(),
    });
  }

  /** Whether the final frame was opened, so that the answer is complete. */
  get isFinal(): boolean {
    return this.#sealedSha256 !== null;
  }

  /** Lowercase hex SHA-256 of all bytes before the final frame, without keep-alives; null until that frame was opened. */
  get sealedSha256(): string | null {
    return this.#sealedSha256;
  }

  /**
   * Opens the next bytes and returns the parts that they complete. After an error, every later call throws the same error.
   *
   * @throws {E2eError} `malformed`, `too_large`, `open_failed`, `truncated` or `after_final`.
   */
  push(bytes: Uint8Array): E2eOpenedParts {
    if (this.#failure !== null) throw this.#failure;
    try {
      this.#walker.push(this.#afterNonce(bytes));
    } catch (error) {
      if (error instanceof E2eError) this.#failure = error;
      throw error;
    }
    const parts = this.#parts;
    this.#parts = [];
    return { parts, abort: this.#abort };
  }

  /** Call after the last byte. Throws E2eError `truncated` without the final frame, `aborted`, or the error of an earlier `push`. */
  end(): void {
    if (this.#failure !== null) throw this.#failure;
    if (this.#abort !== null) throw new E2eError('aborted', `the coordinator ended the answer: ${this.#abort.code}`);
    if (!this.isFinal) throw new E2eError('truncated', 'the answer ends before its final frame does');
  }

  #afterNonce(bytes: Uint8Array): Uint8Array {
    const missing = E2E_RESPONSE_NONCE_BYTES - this.#responseNonce.length;
    if (missing === 0) return bytes;
    this.#responseNonce = concatBytes(this.#responseNonce, bytes.subarray(0, missing));
    if (this.#responseNonce.length < E2E_RESPONSE_NONCE_BYTES) return EMPTY;
    this.#opener = new E2eFrameOpener(this.#crypto, answerSecret(this.#crypto, this.#context, this.#enc, this.#responseNonce));
    this.#hash.update(this.#responseNonce);
    return bytes.subarray(missing);
  }

  #frame(): void {
    const sealed = this.#sealed;
    if (this.#flags === E2E_ABORT) {
      this.#abort = parseE2eAbort(sealed);
      return;
    }
    if (sealed.length === 0) return;
    const isFinal = this.#flags === E2E_FINAL;
    const plaintext = this.#open(sealed, isFinal);
    if (isFinal && !this.#reader.isBetweenParts) throw new E2eError('malformed', 'a part of the answer is cut off');
    const parts = this.#reader.push(plaintext);
    this.#check(parts, isFinal);
    this.#parts.push(...parts);
    if (isFinal) this.#sealedSha256 = toHex(this.#hash.digest());
    else {
      this.#hash.update(this.#frameHeader);
      this.#hash.update(sealed);
    }
  }

  /** Opens the next frame. Throws E2eError `truncated` if this is a later frame of the answer, otherwise `open_failed`. */
  #open(sealed: Uint8Array, isFinal: boolean): Uint8Array {
    const opener = this.#opener as E2eFrameOpener;
    try {
      return opener.open(sealed, isFinal);
    } catch (error) {
      const isLater = error instanceof E2eError && error.code === 'open_failed' && opener.opensLater(sealed, isFinal);
      if (isLater) throw new E2eError('truncated', 'frames of the answer are missing before this one');
      throw error;
    }
  }

  #check(parts: readonly E2ePart[], isFinal: boolean): void {
    if (isFinal && (!this.#hasHead || parts.length !== 1 || parts[0]?.kind !== 'proof' || !this.#reader.isBetweenParts)) {
      throw new E2eError('malformed', 'the final frame does not carry exactly the proof');
    }
    for (const { kind } of parts) {
      if ((kind === 'head') === this.#hasHead) throw new E2eError('malformed', 'an answer begins with its only head');
      if (kind === 'proof' && !isFinal) throw new E2eError('malformed', 'a proof is outside of the final frame');
      this.#hasHead = true;
    }
  }
}

function answerSecret(crypto: E2eCrypto, context: HpkeContext, enc: Uint8Array, responseNonce: Uint8Array): E2eFrameSecret {
  return deriveAnswerSecret(crypto, exportSecret(crypto, context, EXPORT_LABEL, 32), enc, responseNonce, KEY_BYTES);
}

/** Key and base nonce of an answer, from a secret exported from the request's HPKE context (RFC 9458 section 4.4). */
export function deriveAnswerSecret(
  crypto: E2eCrypto,
  secret: Uint8Array,
  enc: Uint8Array,
  responseNonce: Uint8Array,
  keyBytes: number,
): E2eFrameSecret {
  const prk = hkdfExtract(crypto, concatBytes(enc, responseNonce), secret);
  return { key: hkdfExpandBlock(crypto, prk, keyBytes, KEY_LABEL), baseNonce: hkdfExpandBlock(crypto, prk, 12, NONCE_LABEL) };
}
