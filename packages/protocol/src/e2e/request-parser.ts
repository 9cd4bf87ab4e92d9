/**
 * Parser for the structure of a sealed request. Needs no key, so coordinator and provider both use it. Format:
 *
 *   "IE2E" 01 ‖ u16be length ‖ context (canonical JSON)
 *   u8 k ‖ k × (key_id 8 ‖ enc 32 ‖ wrapped data key 48)
 *   commitment 32
 *   frames
 */
import { concatBytes, equalBytes, toHex, utf8 } from '../bytes.js';
import type { KeyId } from '../ids.js';
import { type E2eContext, parseE2eContext } from './context.js';
import { E2eError } from './error.js';
import { E2E_FINAL, E2eFrameWalker } from './frames.js';
import { E2E_TAG_BYTES, MAX_E2E_CONTEXT_BYTES, MAX_E2E_FRAME_BYTES, MAX_E2E_RECIPIENTS, MAX_E2E_REQUEST_HEAD_BYTES } from './limits.js';
import { E2E_PART_HEADER_BYTES, paddedLength } from './parts.js';

/** Magic and version. */
export const E2E_MAGIC = concatBytes(utf8('IE2E'), Uint8Array.of(1));
const KEY_ID_BYTES = 8;
const ENC_BYTES = 32;
const DATA_KEY_BYTES = 32;
const WRAPPED_KEY_BYTES = DATA_KEY_BYTES + E2E_TAG_BYTES;
const RECIPIENT_BYTES = KEY_ID_BYTES + ENC_BYTES + WRAPPED_KEY_BYTES;
const COMMITMENT_BYTES = 32;
const FIXED_BYTES = E2E_MAGIC.length + 2;
const EMPTY: Uint8Array = new Uint8Array(0);

/** Maximum bytes before the first frame. */
export const MAX_E2E_HEADER_BYTES = FIXED_BYTES + MAX_E2E_CONTEXT_BYTES + 1 + MAX_E2E_RECIPIENTS * RECIPIENT_BYTES + COMMITMENT_BYTES;

/** The bytes of a sealed request before its frames. */
export interface E2eRequestHeader {
  readonly context: E2eContext;
  /** Canonical JSON. */
  readonly contextBytes: Uint8Array;
  /** One per recipient of the context, in order. */
  readonly wrappedKeys: readonly { readonly keyId: KeyId; readonly enc: Uint8Array; readonly wrappedKey: Uint8Array }[];
  readonly commitment: Uint8Array;
  /** Bytes before the first frame. */
  readonly headerBytes: number;
}

/** Parses the header; null if more bytes are needed. Throws E2eError `malformed`, `bad_context`, `too_large`. */
export function parseE2eRequestHeader(bytes: Uint8Array): E2eRequestHeader | null {
  const start = Math.min(bytes.length, E2E_MAGIC.length);
  if (!equalBytes(bytes.subarray(0, start), E2E_MAGIC.subarray(0, start)))
    throw new E2eError('malformed', 'not a sealed request of version 1');
  if (bytes.length < FIXED_BYTES) return null;
  const contextLength = ((bytes[E2E_MAGIC.length] as number) << 8) | (bytes[E2E_MAGIC.length + 1] as number);
  if (contextLength > MAX_E2E_CONTEXT_BYTES) throw new E2eError('too_large', `a context of ${contextLength} bytes is over the cap`);
  const contextEnd = FIXED_BYTES + contextLength;
  const count = bytes[contextEnd];
  if (count === undefined) return null;
  if (count > MAX_E2E_RECIPIENTS) throw new E2eError('too_large', `${count} wrapped keys are over the cap`);
  const commitmentAt = contextEnd + 1 + count * RECIPIENT_BYTES;
  const headerBytes = commitmentAt + COMMITMENT_BYTES;
  if (bytes.length < headerBytes) return null;
  const contextBytes = bytes.slice(FIXED_BYTES, contextEnd);
  const context = parseE2eContext(contextBytes);
  if (count !== context.recipients.length) throw new E2eError('malformed', 'the wrapped keys are not as many as the recipients');
  const wrappedKeys = context.recipients.map(({ key_id: keyId }, index) => {
    const at = contextEnd + 1 + index * RECIPIENT_BYTES;
    if (toHex(bytes.subarray(at, at + KEY_ID_BYTES)) !== keyId)
      throw new E2eError('malformed', `wrapped key ${index} is not of its recipient`);
    const encEnd = at + KEY_ID_BYTES + ENC_BYTES;
    return { keyId, enc: bytes.slice(at + KEY_ID_BYTES, encEnd), wrappedKey: bytes.slice(encEnd, at + RECIPIENT_BYTES) };
  });
  return { context, contextBytes, wrappedKeys, commitment: bytes.slice(commitmentAt, headerBytes), headerBytes };
}

/** Validates a sealed request incrementally. Buffers at most {@link MAX_E2E_HEADER_BYTES}. Unusable after an error. */
export class E2eRequestParser {
  readonly #walker: E2eFrameWalker;
  #start: Uint8Array = EMPTY;
  #header: E2eRequestHeader | null = null;
  #plaintextBytes = 0;
  #maxPlaintextBytes = 0;
  /** Ciphertext bytes of the frame before. Only the last frame may be shorter than the maximum. */
  #lastLength = MAX_E2E_FRAME_BYTES;
  #isFinal = false;

  constructor() {
    this.#walker = new E2eFrameWalker('request', {
      onHeader: (flags, length) => this.#frame(flags, length),
      onPayload: () => {},
      onEnd: () => {},
    });
  }

  /** Null until the header is complete. */
  get header(): E2eRequestHeader | null {
    return this.#header;
  }

  /** Throws E2eError `malformed`, `bad_context`, `too_large`, `size_mismatch`, `after_final`. */
  push(bytes: Uint8Array): void {
    if (this.#header !== null) {
      this.#walker.push(bytes);
      return;
    }
    const earlierBytes = this.#start.length;
    this.#start = concatBytes(this.#start, bytes.subarray(0, MAX_E2E_HEADER_BYTES - earlierBytes));
    const header = parseE2eRequestHeader(this.#start);
    if (header === null) return;
    this.#header = header;
    this.#maxPlaintextBytes = plaintextBounds(header.context.body_bytes).max;
    this.#start = EMPTY;
    this.#walker.push(bytes.subarray(header.headerBytes - earlierBytes));
  }

  /** Call after the last byte. Returns the header. Throws E2eError `truncated`, `size_mismatch`. */
  end(): E2eRequestHeader {
    if (this.#header === null || !this.#isFinal || !this.#walker.isAtFrameBoundary) {
      throw new E2eError('truncated', 'the sealed request ends before its final frame does');
    }
    if (this.#plaintextBytes < plaintextBounds(this.#header.context.body_bytes).min) {
      throw new E2eError('size_mismatch', 'the sealed request is shorter than its body_bytes');
    }
    return this.#header;
  }

  #frame(flags: number, length: number): void {
    if (this.#lastLength !== MAX_E2E_FRAME_BYTES) throw new E2eError('malformed', 'a request frame before the last is not full');
    this.#lastLength = length;
    this.#isFinal = flags === E2E_FINAL;
    if (this.#isFinal && length === E2E_TAG_BYTES) throw new E2eError('malformed', 'the last request frame is empty');
    this.#plaintextBytes += length - E2E_TAG_BYTES;
    if (this.#plaintextBytes > this.#maxPlaintextBytes)
      throw new E2eError('size_mismatch', 'the sealed request is longer than its body_bytes');
  }
}

/** Validates a complete sealed request with an {@link E2eRequestParser}. */
export function parseE2eRequest(bytes: Uint8Array): E2eRequestHeader {
  const parser = new E2eRequestParser();
  parser.push(bytes);
  return parser.end();
}

/** Plaintext length of a request with this body length, for the shortest head (`{}`) and the longest. */
function plaintextBounds(bodyBytes: number): { min: number; max: number } {
  const content = 3 * E2E_PART_HEADER_BYTES + bodyBytes;
  return { min: paddedLength(content + 2, 'padme'), max: paddedLength(content + MAX_E2E_REQUEST_HEAD_BYTES, 'padme') };
}
