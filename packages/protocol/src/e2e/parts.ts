/**
 * Encoding of the plaintext of sealed requests and answers: a sequence of parts, `kind u8 ‖ u32be length ‖ bytes`.
 *
 * A part may span several frames. Padding parts hide the exact length.
 */
import { E2eError } from './error.js';
import { E2E_STREAM_PADDING_BYTES } from './limits.js';

const EMPTY: Uint8Array = new Uint8Array(0);

/** The index of each kind is its byte in the encoding. */
const PART_KINDS = ['padding', 'head', 'body', 'image', 'proof'] as const;
export type E2ePartKind = Exclude<(typeof PART_KINDS)[number], 'padding'>;

export interface E2ePart {
  readonly kind: E2ePartKind;
  readonly bytes: Uint8Array;
}

export const E2E_PART_HEADER_BYTES = 5;

/** `padme` adds at most 12 % to a whole request or answer. `stream` pads to multiples of 512 bytes. */
export type E2ePadding = 'padme' | 'stream';

/** Encodes parts, followed by exactly one padding part, which may be empty. */
export function encodeE2eParts(parts: readonly E2ePart[], padding: E2ePadding): Uint8Array {
  let content = E2E_PART_HEADER_BYTES;
  for (const { bytes } of parts) content += E2E_PART_HEADER_BYTES + bytes.length;
  const plaintext = new Uint8Array(paddedLength(content, padding));
  let offset = 0;
  for (const { kind, bytes } of parts) {
    writeHeader(plaintext, offset, PART_KINDS.indexOf(kind), bytes.length);
    plaintext.set(bytes, offset + E2E_PART_HEADER_BYTES);
    offset += E2E_PART_HEADER_BYTES + bytes.length;
  }
  writeHeader(plaintext, offset, 0, plaintext.length - content);
  return plaintext;
}

/** Padded length of `content` bytes. `content` includes the header of the padding part. */
export function paddedLength(content: number, padding: E2ePadding): number {
  return padding === 'padme' ? padmeLength(content) : Math.ceil(content / E2E_STREAM_PADDING_BYTES) * E2E_STREAM_PADDING_BYTES;
}

/** Padmé (Nikitin et al., PETS 2019, section 4): rounds a length up so that only its O(log log n) leading bits vary. */
export function padmeLength(length: number): number {
  if (length < 2) return length;
  const exponent = 31 - Math.clz32(length);
  const lowBits = exponent - (32 - Math.clz32(exponent));
  const mask = 2 ** lowBits - 1;
  return Math.ceil(length / (mask + 1)) * (mask + 1);
}

/** Maximum bytes of each allowed part kind. Other kinds are rejected. */
export type E2ePartLimits = { readonly [K in E2ePartKind]?: number };

/** Splits plaintext into parts incrementally. Buffers at most one incomplete part. Unusable after an error. */
export class E2ePartReader {
  readonly #limits: E2ePartLimits;
  readonly #header = new Uint8Array(E2E_PART_HEADER_BYTES);
  #headerBytes = 0;
  #kind: (typeof PART_KINDS)[number] = 'padding';
  #length = 0;
  #received = 0;
  /** Received bytes of the current part. Grows by doubling, so that an announced length alone allocates no memory. */
  #bytes: Uint8Array = EMPTY;
  /** Bytes before the current part, including headers. */
  #precedingBytes = 0;
  #paddingParts = 0;

  constructor(limits: E2ePartLimits) {
    this.#limits = limits;
  }

  /** Whether the last part is complete. */
  get isBetweenParts(): boolean {
    return this.#headerBytes === 0;
  }

  /** Whether exactly one padding part arrived, as the last part. */
  get endsWithOnlyPadding(): boolean {
    return this.isBetweenParts && this.#paddingParts === 1 && this.#kind === 'padding';
  }

  /** Returns the parts that these bytes complete, without padding. Throws E2eError `malformed`, `too_large`. */
  push(plaintext: Uint8Array): E2ePart[] {
    const parts: E2ePart[] = [];
    let offset = 0;
    while (offset < plaintext.length) {
      if (this.#headerBytes < E2E_PART_HEADER_BYTES) {
        this.#header[this.#headerBytes++] = plaintext[offset++] as number;
        if (this.#headerBytes < E2E_PART_HEADER_BYTES) continue;
        this.#begin();
      } else {
        const piece = plaintext.subarray(offset, offset + this.#length - this.#received);
        this.#take(piece);
        offset += piece.length;
      }
      if (this.#received === this.#length) this.#end(parts);
    }
    return parts;
  }

  #begin(): void {
    const kind = PART_KINDS[this.#header[0] as number];
    const length = readUint32(this.#header, 1);
    // Padmé adds less than an eighth of the preceding bytes; stream padding adds less than E2E_STREAM_PADDING_BYTES.
    const limit = kind === 'padding' ? E2E_STREAM_PADDING_BYTES + Math.floor(this.#precedingBytes / 8) : kind && this.#limits[kind];
    if (kind === undefined || limit === undefined) {
      throw new E2eError('malformed', `a part of kind ${this.#header[0]} is not allowed here`);
    }
    if (length > limit) {
      throw new E2eError(kind === 'padding' ? 'malformed' : 'too_large', `a ${kind} part of ${length} bytes is over the cap of ${limit}`);
    }
    this.#kind = kind;
    this.#length = length;
    this.#received = 0;
    this.#bytes = EMPTY;
  }

  #take(piece: Uint8Array): void {
    const end = this.#received + piece.length;
    if (this.#kind === 'padding') {
      if (!isZero(piece)) throw new E2eError('malformed', 'padding is not zero');
    } else if (piece.length === this.#length) {
      // A part within one frame, the common case, is not copied.
      this.#bytes = piece;
    } else {
      if (end > this.#bytes.length) {
        const grown = new Uint8Array(Math.min(this.#length, Math.max(end, 2 * this.#bytes.length)));
        grown.set(this.#bytes);
        this.#bytes = grown;
      }
      this.#bytes.set(piece, this.#received);
    }
    this.#received = end;
  }

  #end(parts: E2ePart[]): void {
    if (this.#kind === 'padding') this.#paddingParts++;
    else parts.push({ kind: this.#kind, bytes: this.#bytes });
    this.#precedingBytes += E2E_PART_HEADER_BYTES + this.#length;
    this.#bytes = EMPTY;
    this.#headerBytes = 0;
  }
}

/** Uses a loop: `every` with a callback per byte would cost more than decrypting the frame. */
function isZero(bytes: Uint8Array): boolean {
  let bits = 0;
  for (let at = 0; at < bytes.length; at++) bits |= bytes[at] as number;
  return bits === 0;
}

function writeHeader(target: Uint8Array, offset: number, kind: number, length: number): void {
  target[offset] = kind;
  target[offset + 1] = length >>> 24;
  target[offset + 2] = length >>> 16;
  target[offset + 3] = length >>> 8;
  target[offset + 4] = length;
}

function readUint32(bytes: Uint8Array, at: number): number {
  const byte = (offset: number): number => bytes[at + offset] as number;
  return ((byte(0) << 24) | (byte(1) << 16) | (byte(2) << 8) | byte(3)) >>> 0;
}
