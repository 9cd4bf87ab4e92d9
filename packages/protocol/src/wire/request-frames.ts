/** `RequestFrames`: the encoded frames of one request, made when they are sent, so that a large request is not in memory twice. */
import { concatBytes } from '../bytes.js';
import { REQUEST_CHUNK_BYTES } from './limits.js';

interface ChunkedFramesOptions {
  /** Parts of the content, in order. They must not change before the last frame is taken. */
  readonly content: readonly Uint8Array[];
  /** Bytes of a frame besides its content. */
  readonly overheadBytes: number;
  readonly encode: (chunk: Uint8Array, seq: number, final: boolean) => Uint8Array;
}

/** Frames in sending order. Each is taken once, also by iterating. */
export class RequestFrames implements Iterable<Uint8Array> {
  readonly #make: () => Uint8Array;
  #count: number;
  #bytes: number;

  private constructor(count: number, bytes: number, make: () => Uint8Array) {
    this.#count = count;
    this.#bytes = bytes;
    this.#make = make;
  }

  /** Frames with up to `REQUEST_CHUNK_BYTES` of the content each. Empty content is one final frame. */
  static chunked({ content, overheadBytes, encode }: ChunkedFramesOptions): RequestFrames {
    const contentBytes = content.reduce((sum, { length }) => sum + length, 0);
    const count = Math.max(1, Math.ceil(contentBytes / REQUEST_CHUNK_BYTES));
    const nextChunk = chunkReader(content);
    let seq = 0;
    return new RequestFrames(count, contentBytes + count * overheadBytes, () => {
      seq++;
      return encode(nextChunk(), seq - 1, seq === count);
    });
  }

  /** Frames that are encoded already. */
  static encoded(frames: readonly Uint8Array[]): RequestFrames {
    const bytes = frames.reduce((sum, { length }) => sum + length, 0);
    const left = frames.values();
    return new RequestFrames(frames.length, bytes, () => left.next().value as Uint8Array);
  }

  /** Number of frames that are left. */
  get count(): number {
    return this.#count;
  }

  /** Encoded bytes of these frames. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The next frame; null: none is left. */
  take(): Uint8Array | null {
    if (this.#count === 0) return null;
    const frame = this.#make();
    this.#count--;
    this.#bytes -= frame.length;
    return frame;
  }

  *[Symbol.iterator](): Generator<Uint8Array> {
    for (let frame = this.take(); frame !== null; frame = this.take()) yield frame;
  }
}

/** Function that returns the next chunk. A chunk within one part shares its memory. */
function chunkReader(parts: readonly Uint8Array[]): () => Uint8Array {
  let index = 0;
  let offset = 0;
  return () => {
    const pieces: Uint8Array[] = [];
    for (let missing = REQUEST_CHUNK_BYTES; missing > 0 && index < parts.length; ) {
      const part = parts[index] as Uint8Array;
      const piece = part.subarray(offset, offset + missing);
      if (piece.length > 0) pieces.push(piece);
      missing -= piece.length;
      offset += piece.length;
      if (offset === part.length) {
        index++;
        offset = 0;
      }
    }
    const [only] = pieces;
    return only !== undefined && pieces.length === 1 ? only : concatBytes(...pieces);
  };
}
