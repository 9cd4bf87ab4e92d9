/** Splits the bytes of a WebSocket connection into frames (RFC 6455 section 5.2); all other data passes unchanged. */

export interface Chunk {
  readonly bytes: Buffer;
  /** Whether the chunk is exactly one binary frame. */
  readonly binary: boolean;
}

const BINARY_WITH_FIN = 0x82;
const END_OF_HEAD = '\r\n\r\n';

export class WebSocketFrames {
  #head = true;
  #rest: Buffer = Buffer.alloc(0);

  /** Splits bytes into frames; an incomplete frame waits for more. The HTTP head passes unchanged. */
  split(data: Buffer): Chunk[] {
    const chunks: Chunk[] = [];
    let bytes = this.#rest.length === 0 ? data : Buffer.concat([this.#rest, data]);
    if (this.#head) {
      const end = bytes.indexOf(END_OF_HEAD);
      if (end < 0) {
        this.#rest = bytes;
        return [];
      }
      this.#head = false;
      chunks.push({ bytes: bytes.subarray(0, end + END_OF_HEAD.length), binary: false });
      bytes = bytes.subarray(end + END_OF_HEAD.length);
    }
    for (let length = frameLength(bytes); length !== null && length <= bytes.length; length = frameLength(bytes)) {
      chunks.push({ bytes: bytes.subarray(0, length), binary: bytes[0] === BINARY_WITH_FIN });
      bytes = bytes.subarray(length);
    }
    this.#rest = bytes;
    return chunks;
  }
}

/** Length of the frame that begins here, header included; null while unknown. */
function frameLength(bytes: Buffer): number | null {
  if (bytes.length < 2) return null;
  const second = bytes[1] as number;
  const mask = second & 0x80 ? 4 : 0;
  const short = second & 0x7f;
  if (short < 126) return 2 + mask + short;
  if (short === 126) return bytes.length < 4 ? null : 4 + mask + bytes.readUInt16BE(2);
  return bytes.length < 10 ? null : 10 + mask + Number(bytes.readBigUInt64BE(2));
}
