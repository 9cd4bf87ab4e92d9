/**
 * Frame: unit of the link protocol, such as one message of a stream or a fragment of it. An envelope contains one or more frames.
 *
 * Encoding: type and flags (1 byte), number of the stream or request (4 bytes), length (4 bytes), payload.
 */
import { ENVELOPE_HEADER_BYTES } from './envelope.js';

export const FRAME_HEADER_BYTES = 9;
/** Maximum length of the kind of a stream or request, such as `placement`. */
export const MAX_KIND_BYTES = 64;
export const MAX_CODE_BYTES = 128;
/** Maximum payload of a control frame, such as a request, a reply, or the header of a stream. */
export const MAX_CONTROL_PAYLOAD_BYTES = 256 * 1024;
/** Maximum payload of a data frame. Longer messages are split into fragments. */
export const MAX_FRAGMENT_BYTES = 256 * 1024;

/** `data` and `close` use the data lane; all other types are control frames. */
export const FrameType = {
  open: 1,
  data: 2,
  close: 3,
  abort: 4,
  control: 5,
  request: 6,
  reply: 7,
  replyError: 8,
  /** Cancels a request. */
  cancel: 9,
} as const;

/** Bits of a frame's first byte that contain the type. The flags below use the other bits. */
const TYPE_MASK = 0x0f;
/** Data frame: the message is text. */
const TEXT = 0x10;
/** Data frame: more fragments of the message follow. */
const MORE = 0x20;
/** The stream was opened by the sender of the frame. */
const BY_SENDER = 0x40;

export interface Frame {
  readonly type: number;
  readonly isText: boolean;
  readonly hasMore: boolean;
  readonly isOpenedBySender: boolean;
  readonly id: number;
  readonly payload: Buffer;
}

/** First byte of a frame: type and flags. */
export function frameHead(type: number, isOpenedBySender: boolean, isText = false, hasMore = false): number {
  return type | (isText ? TEXT : 0) | (hasMore ? MORE : 0) | (isOpenedBySender ? BY_SENDER : 0);
}

/** Frames for one envelope. Their payloads are copied only when the envelope is written. */
export class FrameBatch {
  readonly #heads: number[] = [];
  readonly #ids: number[] = [];
  readonly #payloads: Uint8Array[] = [];
  bytes = 0;

  get isEmpty(): boolean {
    return this.#heads.length === 0;
  }

  add(head: number, id: number, payload: Uint8Array): void {
    this.#heads.push(head);
    this.#ids.push(id);
    this.#payloads.push(payload);
    this.bytes += FRAME_HEADER_BYTES + payload.length;
  }

  clear(): void {
    this.#heads.length = 0;
    this.#ids.length = 0;
    this.#payloads.length = 0;
    this.bytes = 0;
  }

  /** Writes the frames into an envelope, after the space for its header. */
  writeTo(envelope: Buffer): void {
    let offset = ENVELOPE_HEADER_BYTES;
    for (let index = 0; index < this.#heads.length; index++) {
      const payload = this.#payloads[index] as Uint8Array;
      envelope[offset] = this.#heads[index] as number;
      envelope.writeUInt32BE(this.#ids[index] as number, offset + 1);
      envelope.writeUInt32BE(payload.length, offset + 5);
      envelope.set(payload, offset + FRAME_HEADER_BYTES);
      offset += FRAME_HEADER_BYTES + payload.length;
    }
  }
}

/** Whether the bytes after an envelope's header are complete frames. */
export function hasWholeFrames(envelope: Buffer): boolean {
  let offset = ENVELOPE_HEADER_BYTES;
  while (offset + FRAME_HEADER_BYTES <= envelope.length) offset += FRAME_HEADER_BYTES + envelope.readUInt32BE(offset + 5);
  return offset === envelope.length;
}

/** Calls `callback` for each frame until it returns false. The caller must have checked {@link hasWholeFrames}. */
export function eachFrame(envelope: Buffer, callback: (frame: Frame) => boolean): void {
  let offset = ENVELOPE_HEADER_BYTES;
  while (offset < envelope.length) {
    const head = envelope[offset] ?? 0;
    const end = offset + FRAME_HEADER_BYTES + envelope.readUInt32BE(offset + 5);
    const shouldContinue = callback({
      type: head & TYPE_MASK,
      isText: (head & TEXT) !== 0,
      hasMore: (head & MORE) !== 0,
      isOpenedBySender: (head & BY_SENDER) !== 0,
      id: envelope.readUInt32BE(offset + 1),
      payload: envelope.subarray(offset + FRAME_HEADER_BYTES, end),
    });
    if (!shouldContinue) return;
    offset = end;
  }
}

/** Payload of the frame types `open` and `request`: length of the kind (1 byte), kind, bytes. */
export function encodeKind(kind: string, bytes: Uint8Array): Uint8Array {
  const length = Buffer.byteLength(kind);
  if (length === 0 || length > MAX_KIND_BYTES) throw new RangeError(`a kind has 1 to ${MAX_KIND_BYTES} bytes`);
  const payload = Buffer.allocUnsafe(1 + length + bytes.length);
  payload[0] = length;
  payload.write(kind, 1);
  payload.set(bytes, 1 + length);
  return payload;
}

export function decodeKind(payload: Buffer): { readonly kind: string; readonly bytes: Buffer } | null {
  const length = payload[0] ?? 0;
  if (length === 0 || length > MAX_KIND_BYTES || payload.length < 1 + length) return null;
  return { kind: payload.toString('utf8', 1, 1 + length), bytes: payload.subarray(1 + length) };
}

/** Payload of the frame types `abort` and `replyError`: an error code. */
export function encodeCode(code: string): Uint8Array {
  return Buffer.from(code).subarray(0, MAX_CODE_BYTES);
}

export function decodeCode(payload: Buffer): string {
  return payload.toString('utf8', 0, Math.min(payload.length, MAX_CODE_BYTES));
}
