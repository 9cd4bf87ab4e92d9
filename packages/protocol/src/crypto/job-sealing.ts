/**
 * Seals (encrypts with HPKE) a request in plain mode, as numbered frames. The HPKE `info` commits to the job context.
 *
 * The coordinator seals with `sealRequest`, and the provider opens with `RequestOpener`. Sequence number and final flag of each
 * frame are authenticated, so a missing, repeated, reordered or truncated frame is an error.
 */
import { type JobContext, jobInfo } from '../job-context.js';
import { encodeFrameParts, FRAME_HEADER_BYTES, type Frame, frameAad } from '../wire/frame.js';
import { MAX_VISION_REQUEST_BYTES } from '../wire/limits.js';
import { RequestFrames } from '../wire/request-frames.js';
import { TAG_BYTES } from './aead-sequence.js';
import { sha256 } from './digest.js';
import { type Encapsulation, type RecipientContext, setupRecipient, setupSender } from './hpke.js';
import { ResponseOpener, ResponseSealer, responseSecret } from './response-sealing.js';
import { SealingError } from './sealing-error.js';
import type { SealingKeyPair } from './x25519.js';

export interface SealedRequest {
  /** HPKE encapsulated key, 32 bytes. */
  readonly enc: Uint8Array;
  /** Each frame is sealed only when the caller takes it. */
  readonly frames: RequestFrames;
  /** Opens the provider's response frames. */
  readonly responses: ResponseOpener;
}

/**
 * Seals a request body and its attachments. Never reuse an encapsulation.
 *
 * @param attachments Bytes that follow the body: the fetched images.
 * @throws {SealingError} `too_large` above {@link MAX_VISION_REQUEST_BYTES}.
 */
export function sealRequest(
  context: JobContext,
  encapsulation: Encapsulation,
  body: Uint8Array,
  attachments: readonly Uint8Array[] = [],
): SealedRequest {
  const content = [body, ...attachments];
  const bytes = content.reduce((sum, { length }) => sum + length, 0);
  if (bytes > MAX_VISION_REQUEST_BYTES) throw new SealingError('too_large', `request of ${bytes} bytes is over the cap`);
  const sender = setupSender(encapsulation, jobInfo(context, sha256));
  const frames = RequestFrames.chunked({
    content,
    overheadBytes: FRAME_HEADER_BYTES + TAG_BYTES,
    encode: (chunk, seq, final) => {
      const { ciphertext, tag } = sender.sealParts(frameAad(seq, final), chunk);
      return encodeFrameParts({ type: 'request', final, seq, jobId: context.job_id }, ciphertext, tag);
    },
  });
  return { enc: sender.enc, frames, responses: new ResponseOpener(context.job_id, responseSecret(sender)) };
}

/** Opens and joins the request frames of one job. After a rejected frame, the same frame is still expected. */
export class RequestOpener {
  readonly #context: JobContext;
  readonly #recipient: RecipientContext;
  readonly #requestBytes: number;
  #body: Uint8Array | null = null;
  #received = 0;
  #seq = 0;
  #isComplete = false;
  #sealer: ResponseSealer | null = null;

  /**
   * A wrong key or context is detected only at the first frame.
   *
   * @param requestBytes Announced plaintext bytes of body and attachments.
   * @throws {SealingError} `too_large` above the maximum, `bad_key` on a malformed `enc`.
   */
  constructor(context: JobContext, enc: Uint8Array, key: SealingKeyPair, requestBytes: number) {
    if (requestBytes > MAX_VISION_REQUEST_BYTES) throw new SealingError('too_large', `request of ${requestBytes} bytes is over the cap`);
    this.#context = context;
    this.#requestBytes = requestBytes;
    this.#recipient = setupRecipient(key, enc, jobInfo(context, sha256));
  }

  /**
   * Opens the next frame. Returns body and attachments, joined, at the final frame; null before.
   *
   * @throws {SealingError} `after_final`, `wrong_frame`, `out_of_order`, `too_large`, `size_mismatch` or `open_failed`.
   */
  accept(frame: Frame): Uint8Array | null {
    if (this.#isComplete) throw new SealingError('after_final', 'a request frame follows the final one');
    if (frame.type !== 'request' || frame.jobId !== this.#context.job_id)
      throw new SealingError('wrong_frame', 'not a frame of this request');
    if (frame.seq !== this.#seq) throw new SealingError('out_of_order', `request frame ${frame.seq} came in place of ${this.#seq}`);
    const total = this.#received + frame.payload.length - TAG_BYTES;
    if (total > this.#requestBytes) throw new SealingError('too_large', 'the request has more bytes than announced');
    if (frame.final && total !== this.#requestBytes) throw new SealingError('size_mismatch', 'the request has fewer bytes than announced');
    const plaintext = this.#recipient.open(frameAad(frame.seq, frame.final), frame.payload);
    this.#seq++;
    this.#isComplete = frame.final;
    // Single-frame requests, the common case, need no copy.
    if (frame.final && this.#body === null) return plaintext;
    this.#body ??= new Uint8Array(this.#requestBytes);
    this.#body.set(plaintext, this.#received);
    plaintext.fill(0);
    this.#received = total;
    return frame.final ? this.#body : null;
  }

  /** Zeroes the plaintext of an incomplete request. A buffer returned by `accept` belongs to the caller. */
  erase(): void {
    if (!this.#isComplete) this.#body?.fill(0);
  }

  /** The only sealer of this job's response. Throws SealingError `incomplete` before the final frame. */
  responseSealer(): ResponseSealer {
    if (!this.#isComplete) throw new SealingError('incomplete', 'the request is not complete');
    // A second sealer would restart at sequence number 0 under the same key.
    this.#sealer ??= new ResponseSealer(this.#context.job_id, responseSecret(this.#recipient));
    return this.#sealer;
  }
}
