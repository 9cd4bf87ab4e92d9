/**
 * Binary WebSocket frames that carry sealed request and response bytes: a header of 24 bytes, then the payload.
 *
 *   offset 0  type    u8   1 = request (coordinator to provider), 2 = response (provider to coordinator)
 *   offset 1  flags   u8   bit 0 = final; every other bit is zero
 *   offset 2  zero    u16  reserved
 *   offset 4  seq     u32  big endian, from 0, per direction of a job
 *   offset 8  job     16 bytes of the job's UUID
 *
 * In plain mode, the AEAD authenticates sequence number and flags ({@link frameAad}), and the key is unique to the job.
 */
import { fromHex, toHex } from '../bytes.js';
import type { JobId } from '../ids.js';
import { MAX_FRAME_PAYLOAD_BYTES } from './limits.js';

type FrameType = 'request' | 'response';

export interface Frame {
  readonly type: FrameType;
  readonly final: boolean;
  readonly seq: number;
  readonly jobId: JobId;
  /** Sealed bytes. The payload of a decoded frame shares memory with the received message. */
  readonly payload: Uint8Array;
}

export const FRAME_HEADER_BYTES = 24;

const TYPE_BYTES = { request: 1, response: 2 } as const;
const FINAL = 1;

export class FrameError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'FrameError';
  }
}

/** Encodes a frame. Throws {@link FrameError} if the payload is too large. */
export function encodeFrame(frame: Frame): Uint8Array {
  return encodeFrameParts(frame, frame.payload);
}

/** Like {@link encodeFrame}, with the payload in parts, which avoids a copy to join ciphertext and tag. */
export function encodeFrameParts(head: Omit<Frame, 'payload'>, ...payload: readonly Uint8Array[]): Uint8Array {
  let length = 0;
  for (const part of payload) length += part.length;
  if (length > MAX_FRAME_PAYLOAD_BYTES) {
    throw new FrameError(`frame payload of ${length} bytes is over the cap of ${MAX_FRAME_PAYLOAD_BYTES}`);
  }
  const bytes = new Uint8Array(FRAME_HEADER_BYTES + length);
  bytes[0] = TYPE_BYTES[head.type];
  bytes[1] = head.final ? FINAL : 0;
  bytes[4] = head.seq >>> 24;
  bytes[5] = head.seq >>> 16;
  bytes[6] = head.seq >>> 8;
  bytes[7] = head.seq;
  bytes.set(jobIdBytes(head.jobId), 8);
  let offset = FRAME_HEADER_BYTES;
  for (const part of payload) {
    bytes.set(part, offset);
    offset += part.length;
  }
  return bytes;
}

/** Decodes a frame. Throws {@link FrameError} on a short, oversized or malformed frame. */
export function decodeFrame(bytes: Uint8Array): Frame {
  if (bytes.length < FRAME_HEADER_BYTES) throw new FrameError(`frame of ${bytes.length} bytes is shorter than its header`);
  if (bytes.length > FRAME_HEADER_BYTES + MAX_FRAME_PAYLOAD_BYTES) {
    throw new FrameError(`frame payload of ${bytes.length - FRAME_HEADER_BYTES} bytes is over the cap of ${MAX_FRAME_PAYLOAD_BYTES}`);
  }
  const type = bytes[0] === TYPE_BYTES.request ? 'request' : bytes[0] === TYPE_BYTES.response ? 'response' : null;
  if (type === null) throw new FrameError(`unknown frame type ${bytes[0]}`);
  const flags = bytes[1] as number;
  if ((flags & ~FINAL) !== 0 || bytes[2] !== 0 || bytes[3] !== 0) throw new FrameError('reserved bits of the frame header are set');
  return {
    type,
    final: flags === FINAL,
    seq: readUint32(bytes, 4),
    jobId: jobIdFromBytes(bytes.subarray(8, FRAME_HEADER_BYTES)),
    payload: bytes.subarray(FRAME_HEADER_BYTES),
  };
}

/** Associated data of a sealed frame: u32be sequence number ‖ flags byte. */
export function frameAad(seq: number, final: boolean): Uint8Array {
  return Uint8Array.of(seq >>> 24, seq >>> 16, seq >>> 8, seq, final ? FINAL : 0);
}

function readUint32(bytes: Uint8Array, at: number): number {
  const byte = (offset: number): number => bytes[at + offset] as number;
  return ((byte(0) << 24) | (byte(1) << 16) | (byte(2) << 8) | byte(3)) >>> 0;
}

function jobIdBytes(jobId: JobId): Uint8Array {
  return fromHex(jobId.replaceAll('-', ''));
}

function jobIdFromBytes(bytes: Uint8Array): JobId {
  const hex = toHex(bytes);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}` as JobId;
}
