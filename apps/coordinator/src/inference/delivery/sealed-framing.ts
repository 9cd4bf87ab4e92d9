/**
 * `SealedFraming`: `StreamFraming` for sealed (end-to-end encrypted) answers. Withholds the final frame, without which the client rejects
 * the answer, until `ending`.
 *
 * The coordinator writes keep-alive and abort frames, so these are not encrypted.
 */
import { type ApiError, ERRORS } from '@inference/formats';
import {
  concatBytes,
  E2E_FRAME_HEADER_BYTES,
  E2E_RESPONSE_CONTENT_TYPE,
  E2E_RESPONSE_NONCE_BYTES,
  e2eKeepAlive,
  encodeE2eAbort,
} from '@inference/protocol';
import type { StreamFraming } from './stream-framing.js';

const NOTHING = new Uint8Array(0);

export class SealedFraming implements StreamFraming {
  readonly #tracker = new SealedFrameTracker();
  /** Pieces of the withheld final frame. */
  readonly #finalFrame: Uint8Array[] = [];
  readonly keepAlive = e2eKeepAlive();
  readonly headers = { 'Content-Type': E2E_RESPONSE_CONTENT_TYPE, 'Cache-Control': 'no-store', 'X-Accel-Buffering': 'no' };

  take(bytes: Uint8Array): Uint8Array {
    const contentBytes = this.#tracker.push(bytes);
    if (contentBytes === bytes.length) return bytes;
    this.#finalFrame.push(bytes.subarray(contentBytes));
    return bytes.subarray(0, contentBytes);
  }

  get isBetweenUnits(): boolean {
    return this.#tracker.isAtBoundary;
  }

  ending(): ReturnType<StreamFraming['ending']> {
    return { bytes: concatBytes(...this.#finalFrame), trailers: null };
  }

  /** Abort frame with the error. Empty after an incomplete frame, where no other frame may follow. */
  failure(error: ApiError): Uint8Array {
    const abort = encodeE2eAbort({ status: ERRORS[error.code].status, code: error.code, message: error.message });
    // The withheld final frame is not written, so the written bytes end at a frame boundary.
    const isWrittenUpToBoundary = this.isBetweenUnits || this.#finalFrame.length > 0;
    if (isWrittenUpToBoundary) return abort;
    // An answer begins with a nonce. Zeros are safe here, because nothing is sealed under this nonce.
    return this.#tracker.isEmpty ? concatBytes(new Uint8Array(E2E_RESPONSE_NONCE_BYTES), abort) : NOTHING;
  }
}

/** Flag of the last sealed frame. A frame is `flags u8 ‖ length u24be ‖ ciphertext`. */
const FINAL_FLAG = 0x01;

/** Finds the frame boundaries of a sealed answer by its unencrypted frame headers. `E2eAnswerMeter` validates the frames. */
export class SealedFrameTracker {
  /** Bytes until the next frame header: at first those of the nonce with which an answer starts. */
  #untilHeader = E2E_RESPONSE_NONCE_BYTES;
  /** Bytes of the current header read so far. */
  #headerBytes = 0;
  /** Length of the current frame's ciphertext, as far as its header was read. */
  #length = 0;
  #hasFinalFrameBegun = false;
  #isEmpty = true;

  /** Whether no byte has arrived yet. */
  get isEmpty(): boolean {
    return this.#isEmpty;
  }

  /** Whether the next byte begins a frame, and the final frame has not begun. */
  get isAtBoundary(): boolean {
    return this.#untilHeader === 0 && this.#headerBytes === 0 && !this.#hasFinalFrameBegun;
  }

  /** Takes the next bytes of the answer. Returns the number of bytes that precede the final frame. */
  push(bytes: Uint8Array): number {
    if (bytes.length > 0) this.#isEmpty = false;
    let at = 0;
    while (at < bytes.length && !this.#hasFinalFrameBegun) {
      const skipped = Math.min(this.#untilHeader, bytes.length - at);
      this.#untilHeader -= skipped;
      at += skipped;
      if (at === bytes.length) break;
      const byte = bytes[at] as number;
      if (this.#headerBytes === 0) {
        if (byte === FINAL_FLAG) this.#hasFinalFrameBegun = true;
        if (this.#hasFinalFrameBegun) break;
        this.#length = 0;
      } else this.#length = this.#length * 256 + byte;
      at++;
      this.#headerBytes++;
      if (this.#headerBytes === E2E_FRAME_HEADER_BYTES) {
        this.#headerBytes = 0;
        this.#untilHeader = this.#length;
      }
    }
    return at;
  }
}
