/** Finds the frame boundaries of a sealed answer by its unencrypted frame headers. `E2eAnswerMeter` validates the frames. */
import { E2E_FRAME_HEADER_BYTES, E2E_RESPONSE_NONCE_BYTES } from '@inference/protocol';

/** Flag of the last sealed frame. A frame is `flags u8 ‖ length u24be ‖ ciphertext`. */
const FINAL_FLAG = 0x01;

export class SealedFrameTracker {
  /** Bytes until the next frame header. The answer starts with a nonce. */
  #untilHeader = E2E_RESPONSE_NONCE_BYTES;
  /** Bytes of the current header read so far. */
  #headerBytes = 0;
  #length = 0;
  #isFinalFrame = false;

  /** Whether no byte has arrived yet. */
  isEmpty = true;

  /** Whether the next byte begins a frame, and the final frame has not begun. */
  get isAtBoundary(): boolean {
    return this.#untilHeader === 0 && this.#headerBytes === 0 && !this.#isFinalFrame;
  }

  /** Takes the next bytes of the answer. Returns the number of bytes that precede the final frame. */
  push(bytes: Uint8Array): number {
    if (bytes.length > 0) this.isEmpty = false;
    let at = 0;
    while (at < bytes.length && !this.#isFinalFrame) {
      const skipped = Math.min(this.#untilHeader, bytes.length - at);
      this.#untilHeader -= skipped;
      at += skipped;
      if (at === bytes.length) break;
      const byte = bytes[at] as number;
      if (this.#headerBytes === 0) {
        if (byte === FINAL_FLAG) this.#isFinalFrame = true;
        if (this.#isFinalFrame) break;
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
