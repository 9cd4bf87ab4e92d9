/**
 * `StreamFraming` for sealed (end-to-end encrypted) answers. Withholds the final frame, which carries the proof, until the job is
 * verified and charged.
 *
 * Keep-alive and abort frames are not encrypted, because the coordinator writes them.
 */
import { type ApiError, ERRORS } from '@inference/formats';
import { concatBytes, E2E_RESPONSE_CONTENT_TYPE, E2E_RESPONSE_NONCE_BYTES, e2eKeepAlive, encodeE2eAbort } from '@inference/protocol';
import { SealedFrameTracker } from './sealed-frame-tracker.js';
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

  /** Abort frame. Empty after an incomplete frame, so that the answer ends without a final frame. */
  failure(error: ApiError): Uint8Array {
    const abort = encodeE2eAbort({ status: ERRORS[error.code].status, code: error.code, message: error.message });
    // The withheld final frame is not written, so the written bytes end at a frame boundary.
    const isWrittenUpToBoundary = this.isBetweenUnits || this.#finalFrame.length > 0;
    if (isWrittenUpToBoundary) return abort;
    // An answer begins with a nonce. Zeros are safe here, because nothing is sealed under this nonce.
    return this.#tracker.isEmpty ? concatBytes(new Uint8Array(E2E_RESPONSE_NONCE_BYTES), abort) : NOTHING;
  }
}
