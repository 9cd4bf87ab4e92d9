/**
 * `RequestFrames`: the remaining frames of one request, with their count and size.
 *
 * `chunked` encodes each frame only when the caller takes it, so that a large request is not in memory twice.
 */
import { concatBytes } from '../bytes.js';
import { REQUEST_CHUNK_BYTES } from './limits.js';

interface ChunkedFramesOptions {
  /** Content, in order. The bytes must not change before the last frame is taken. */
  readonly content: readonly Uint8Array[];
  /** Bytes that `encode` adds to each chunk. */
  readonly overheadBytes: number;
  readonly encode: (chunk: Uint8Array, seq: number, final: boolean) => Uint8Array;
}

/** Frames in sending order. `take` and iteration both consume them. */
export class RequestFrames implements Iterable<Uint8Array> {
  readonly #make: () => Uint8Array;
  #count: number;
  #bytes: number;

  private constructor(count: number, bytes: number, make: () => Uint8Array) {
    this.#count = count;
    this.#bytes = bytes;
    this.#make = make;
  }

  /** Encodes each `REQUEST_CHUNK_BYTES` of content as one frame. Empty content becomes one final frame. */
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

  /** Wraps frames that are already encoded. */
  static encoded(frames: readonly Uint8Array[]): RequestFrames {
    const bytes = frames.reduce((sum, { length }) => sum + length, 0);
    const left = frames.values();
    return new RequestFrames(frames.length, bytes, () => left.next().value as Uint8Array);
  }

  /** Number of remaining frames. */
  get count(): number {
    return this.#count;
  }

  /** Encoded size of the remaining frames. */
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

/** Returns a function that returns the next chunk. Copies bytes only if a chunk spans several parts. */
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
