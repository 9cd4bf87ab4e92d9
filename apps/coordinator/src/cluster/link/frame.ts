/** Frames inside an envelope, and their encoding: type (1 byte), stream or request number (4 bytes), length (4 bytes), payload. */
import { ENVELOPE_HEADER_BYTES } from './envelope.js';

export const FRAME_HEADER_BYTES = 9;
export const MAX_KIND_BYTES = 64;
export const MAX_CODE_BYTES = 128;
/** Payload of a control frame: requests, replies, and headers of streams. */
export const MAX_CONTROL_PAYLOAD_BYTES = 256 * 1024;
/** Longer messages are cut into fragments. */
export const MAX_FRAGMENT_BYTES = 256 * 1024;

export const FrameType = {
  open: 1,
  data: 2,
  close: 3,
  abort: 4,
  control: 5,
  request: 6,
  reply: 7,
  replyError: 8,
  cancel: 9,
} as const;

const TYPE_MASK = 0x0f;
/** Data: the message is text. */
const TEXT = 0x10;
/** Data: more fragments of the message follow. */
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

export function frameHead(type: number, isOpenedBySender: boolean, isText = false, hasMore = false): number {
  return type | (isText ? TEXT : 0) | (hasMore ? MORE : 0) | (isOpenedBySender ? BY_SENDER : 0);
}

/** Frames that are sent in one envelope at the end of the turn. Payloads are copied only then. */
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

  /** Writes the frames after the place for the envelope's header. */
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

/** True if the bytes after the header are whole frames. */
export function hasWholeFrames(envelope: Buffer): boolean {
  let offset = ENVELOPE_HEADER_BYTES;
  while (offset + FRAME_HEADER_BYTES <= envelope.length) offset += FRAME_HEADER_BYTES + envelope.readUInt32BE(offset + 5);
  return offset === envelope.length;
}

/** Calls back for each frame of an envelope that {@link hasWholeFrames}, until the callback returns false. */
export function eachFrame(envelope: Buffer, callback: (frame: Frame) => boolean): void {
  let offset = ENVELOPE_HEADER_BYTES;
  while (offset < envelope.length) {
    const head = envelope[offset] ?? 0;
    const end = offset + FRAME_HEADER_BYTES + envelope.readUInt32BE(offset + 5);
    const isGoingOn = callback({
      type: head & TYPE_MASK,
      isText: (head & TEXT) !== 0,
      hasMore: (head & MORE) !== 0,
      isOpenedBySender: (head & BY_SENDER) !== 0,
      id: envelope.readUInt32BE(offset + 1),
      payload: envelope.subarray(offset + FRAME_HEADER_BYTES, end),
    });
    if (!isGoingOn) return;
    offset = end;
  }
}

/** Payload of `open` and `request`: length of the kind, kind, bytes. */
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

/** Bounded text of `abort` and `replyError`. */
export function encodeCode(code: string): Uint8Array {
  return Buffer.from(code).subarray(0, MAX_CODE_BYTES);
}

export function decodeCode(payload: Buffer): string {
  return payload.toString('utf8', 0, Math.min(payload.length, MAX_CODE_BYTES));
}
