/**
 * Sealed answer: `rn (32 random bytes) ‖ frames`, under a key of one candidate (derivation of RFC 9458 section 4.4). The last frame
 * carries the proof alone, because the receipt in it names the hash of everything before. A zero-length frame is a keep-alive, and
 * flags 80 an abort by the coordinator in clear; neither is authenticated or hashed.
 */
import Type, { type Static } from 'typebox';
import { Compile } from 'typebox/compile';
import { concatBytes, toHex, utf8 } from '../bytes.js';
import { canonicalJsonBytes, type JsonValue } from '../canonical-json.js';
import { Base64Schema, Sha256HexSchema } from '../ids.js';
import { SignedStatementSchema } from '../statements/signed-statement.js';
import type { E2eCrypto, Sha256Stream } from './crypto.js';
import { E2eError } from './error.js';
import { E2E_ABORT, E2E_FINAL, E2eFrameOpener, E2eFrameSealer, type E2eFrameSecret, E2eFrameWalker, encodeE2eFrame } from './frames.js';
import { exportSecret, type HpkeContext, hkdfExpand, hkdfExtract } from './hpke.js';
import { parseCanonicalJson } from './json.js';
import {
  E2E_CHUNK_BYTES,
  E2E_RESPONSE_NONCE_BYTES,
  E2E_TAG_BYTES,
  MAX_E2E_ABORT_BYTES,
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

/** Head part of an answer: status and headers of the plain-mode response. */
export const E2eAnswerHeadSchema = Type.Object({
  status: Type.Integer({ minimum: 200, maximum: 599 }),
  content_type: Type.String({ pattern: '^[\\x20-\\x7e]{1,128}$' }),
  /** Lowercase names. */
  headers: Type.Optional(
    Type.Record(Type.String({ pattern: '^[a-z0-9-]{1,64}$' }), Type.String({ pattern: '^[\\x20-\\x7e]{0,1024}$' }), { maxProperties: 32 }),
  ),
});
export type E2eAnswerHead = Static<typeof E2eAnswerHeadSchema>;

/** Proof part: the provider's signatures, as plain mode sends them after the body. */
export const E2eProofSchema = Type.Object({
  /** Lowercase hex SHA-256 of the joined body parts. */
  response_hash: Sha256HexSchema,
  /** base64 strict-DER signature over the 64 ASCII digits of `response_hash`. */
  se_signature: Base64Schema,
  /** Statement of kind `e2e-receipt`. */
  receipt: SignedStatementSchema,
});
export type E2eProof = Static<typeof E2eProofSchema>;

/** Payload of an abort frame: the coordinator's word, unauthenticated. */
export const E2eAbortSchema = Type.Object({
  /** HTTP status that the request would have had. */
  status: Type.Integer({ minimum: 400, maximum: 599 }),
  code: Type.String({ pattern: '^[a-z0-9_]{1,64}$' }),
  message: Type.String({ maxLength: 512 }),
});
export type E2eAbort = Static<typeof E2eAbortSchema>;

const headValidator = Compile(E2eAnswerHeadSchema);
const proofValidator = Compile(E2eProofSchema);
const abortValidator = Compile(E2eAbortSchema);

const KEEP_ALIVE = Object.freeze([0, 0, 0, 0]);

/** Zero-length frame: shows that the connection lives. Allowed between frames. */
export function e2eKeepAlive(): Uint8Array {
  return Uint8Array.from(KEEP_ALIVE);
}

/** Abort frame of the coordinator. Allowed between frames; nothing follows. Throws E2eError `malformed`, `too_large`. */
export function encodeE2eAbort(abort: E2eAbort): Uint8Array {
  if (!abortValidator.Check(abort)) throw new E2eError('malformed', 'the abort is not valid');
  const json = canonicalJsonBytes(abort);
  if (json.length > MAX_E2E_ABORT_BYTES) throw new E2eError('too_large', 'the abort is over the cap');
  return encodeE2eFrame(E2E_ABORT, json);
}

/** Head part of canonical JSON. Throws E2eError `malformed`. */
export function encodeE2eAnswerHead(head: E2eAnswerHead): E2ePart {
  if (!headValidator.Check(head)) throw new E2eError('malformed', 'the head of the answer is not valid');
  return { kind: 'head', bytes: canonicalJsonBytes(head as JsonValue) };
}

/** Reads a head part. Throws E2eError `malformed`. */
export function parseE2eAnswerHead(bytes: Uint8Array): E2eAnswerHead {
  const head = parseCanonicalJson(bytes, 'head of the answer');
  if (!headValidator.Check(head)) throw new E2eError('malformed', 'the head of the answer is not valid');
  return head;
}

/** Reads a proof part. Throws E2eError `malformed`. */
export function parseE2eProof(bytes: Uint8Array): E2eProof {
  const proof = parseCanonicalJson(bytes, 'proof of the answer');
  if (!proofValidator.Check(proof)) throw new E2eError('malformed', 'the proof of the answer is not valid');
  return proof;
}

/** Provider's side. Order of calls: `start`, `seal` any number of times, `sealedSha256`, `finish`. */
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

  /** Bytes of body and image parts so far: `response_bytes` of the receipt. */
  get responseBytes(): number {
    return this.#responseBytes;
  }

  /** First bytes of the answer: its nonce. Called once. */
  start(): Uint8Array {
    this.#require('new');
    this.#state = 'open';
    this.#hash.update(this.#responseNonce);
    return this.#responseNonce;
  }

  /** Frames with these parts and padding. The first part of an answer is its head; a proof belongs to `finish`. */
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

  /** Zero-length frame. */
  keepAlive(): Uint8Array {
    return e2eKeepAlive();
  }

  /** Lowercase hex SHA-256 of everything before the final frame, for the receipt. Ends the content. */
  sealedSha256(): string {
    if (this.#state === 'open') {
      this.#sealedSha256 = toHex(this.#hash.digest());
      this.#state = 'hashed';
    }
    this.#require('hashed');
    return this.#sealedSha256;
  }

  /** The final frame. Throws E2eError `malformed`, `too_large`. */
  finish(proof: E2eProof): Uint8Array {
    this.#require('hashed');
    if (!proofValidator.Check(proof)) throw new E2eError('malformed', 'the proof of the answer is not valid');
    const bytes = canonicalJsonBytes(proof);
    if (bytes.length > MAX_E2E_PROOF_BYTES) throw new E2eError('too_large', 'the proof is over the cap');
    this.#state = 'finished';
    return this.#sealer.seal(encodeE2eParts([{ kind: 'proof', bytes }], 'stream'), true);
  }

  #require(state: 'new' | 'open' | 'hashed'): void {
    if (this.#state !== state) throw new Error(`a sealed answer is ${this.#state}, not ${state}`);
  }
}

/** Result of one push. */
export interface E2eOpenedParts {
  /** Complete parts in order, without padding. The first of an answer is its head, the last its proof. */
  readonly parts: readonly E2ePart[];
  /** The coordinator ended the answer. Nothing follows. */
  readonly abort: E2eAbort | null;
}

/** Client's side: opens one candidate's answer incrementally. Holds one frame and one part at most. */
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
  #flags = 0;
  #frameHeader: Uint8Array = EMPTY;
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
        this.#sealed = new Uint8Array(length);
        this.#received = 0;
      },
      onPayload: (piece) => {
        this.#sealed.set(piece, this.#received);
        this.#received += piece.length;
      },
      onEnd: () => this.#frame(),
    });
  }

  /** Whether the final frame was opened: the answer is complete. */
  get isFinal(): boolean {
    return this.#sealedSha256 !== null;
  }

  /** Lowercase hex SHA-256 of everything before the final frame; null before that. */
  get sealedSha256(): string | null {
    return this.#sealedSha256;
  }

  /**
   * Parts that these bytes complete. Throws E2eError `malformed`, `too_large`, `open_failed`, `truncated`, `after_final`, and the
   * same error on every later call.
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

  /** Ends the bytes. Throws E2eError `truncated` without the final frame, `aborted` after an abort. */
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
      this.#abort = parseAbort(sealed);
      return;
    }
    if (sealed.length === 0) return;
    const isFinal = this.#flags === E2E_FINAL;
    const plaintext = (this.#opener as E2eFrameOpener).open(sealed, isFinal);
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

/** Coordinator's view of a sealed answer: structure, hash and sizes, without any key. Holds nothing of the answer. */
export class E2eAnswerMeter {
  readonly #walker: E2eFrameWalker;
  readonly #hash: Sha256Stream;
  #nonceBytes = 0;
  #isFinalFrame = false;
  #isComplete = false;
  #sealedBytes = 0;
  #sealedSha256: string | null = null;

  constructor(crypto: E2eCrypto) {
    this.#hash = crypto.createSha256();
    this.#walker = new E2eFrameWalker('answer', {
      onHeader: (flags, length, header) => this.#header(flags, length, header),
      onPayload: (piece) => {
        if (!this.#isFinalFrame) this.#hash.update(piece);
      },
      onEnd: () => {
        this.#isComplete = this.#isFinalFrame;
      },
    });
  }

  /** Whether the whole final frame came. */
  get isFinal(): boolean {
    return this.#isComplete;
  }

  /** Whether a keep-alive or an abort may be inserted here. */
  get isAtFrameBoundary(): boolean {
    return this.#nonceBytes === E2E_RESPONSE_NONCE_BYTES && this.#walker.isAtFrameBoundary;
  }

  /** Plaintext bytes of the frames so far, padding included and the final frame excluded: bound of `response_bytes`. */
  get sealedBytes(): number {
    return this.#sealedBytes;
  }

  /** Lowercase hex SHA-256 of everything before the final frame; null before that. */
  get sealedSha256(): string | null {
    return this.#sealedSha256;
  }

  /** Throws E2eError `malformed` (also: an abort, which no provider sends), `too_large`, `after_final`. */
  push(bytes: Uint8Array): void {
    const nonce = bytes.subarray(0, E2E_RESPONSE_NONCE_BYTES - this.#nonceBytes);
    if (nonce.length > 0) this.#hash.update(nonce);
    this.#nonceBytes += nonce.length;
    this.#walker.push(bytes.subarray(nonce.length));
  }

  /** Throws E2eError `truncated` without a complete final frame. */
  end(): void {
    if (!this.isFinal) throw new E2eError('truncated', 'the answer ends before its final frame does');
  }

  #header(flags: number, length: number, header: Uint8Array): void {
    if (flags === E2E_ABORT) throw new E2eError('malformed', 'an abort frame from a provider');
    this.#isFinalFrame = flags === E2E_FINAL;
    if (length === 0) return;
    if (this.#isFinalFrame) this.#sealedSha256 = toHex(this.#hash.digest());
    else {
      this.#hash.update(header);
      this.#sealedBytes += length - E2E_TAG_BYTES;
    }
  }
}

function answerSecret(crypto: E2eCrypto, context: HpkeContext, enc: Uint8Array, responseNonce: Uint8Array): E2eFrameSecret {
  return deriveAnswerSecret(crypto, exportSecret(crypto, context, EXPORT_LABEL, 32), enc, responseNonce, KEY_BYTES);
}

/** RFC 9458 section 4.4: key and nonce of a response, from a secret of the request's HPKE context. */
export function deriveAnswerSecret(
  crypto: E2eCrypto,
  secret: Uint8Array,
  enc: Uint8Array,
  responseNonce: Uint8Array,
  keyBytes: number,
): E2eFrameSecret {
  const prk = hkdfExtract(crypto, concatBytes(enc, responseNonce), secret);
  return { key: hkdfExpand(crypto, prk, keyBytes, KEY_LABEL), baseNonce: hkdfExpand(crypto, prk, 12, NONCE_LABEL) };
}

function parseAbort(bytes: Uint8Array): E2eAbort {
  const abort = parseCanonicalJson(bytes, 'abort');
  if (!abortValidator.Check(abort)) throw new E2eError('malformed', 'the abort is not valid');
  return abort;
}
