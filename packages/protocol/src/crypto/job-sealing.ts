/**
 * Sealing (HPKE encryption) of a job's request in plain mode: the coordinator seals, one provider opens.
 *
 * The request becomes numbered frames. Each frame authenticates its number and whether it is the last one, so a missing, repeated,
 * reordered or truncated frame is an error. The frames open only together with the job context, the job's terms in clear text.
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

export interface SealedJobRequest {
  /** HPKE encapsulated key, 32 bytes, from which the provider derives the keys. */
  readonly enc: Uint8Array;
  /** Each frame is sealed only when the caller takes it. */
  readonly frames: RequestFrames;
  /** Opens the frames of the provider's response. */
  readonly responseOpener: ResponseOpener;
}

/**
 * Seals a request body and its attachments to one provider.
 *
 * @param encapsulation New for each call. With the same context, a second use would repeat key and nonces.
 * @param attachments Images that the coordinator fetched. They follow the body.
 * @throws {SealingError} `too_large` above {@link MAX_VISION_REQUEST_BYTES}.
 */
export function sealRequest(
  context: JobContext,
  encapsulation: Encapsulation,
  body: Uint8Array,
  attachments: readonly Uint8Array[] = [],
): SealedJobRequest {
  const content = [body, ...attachments];
  const requestBytes = content.reduce((sum, { length }) => sum + length, 0);
  requireWithinLimit(requestBytes);
  const sender = setupSender(encapsulation, jobInfo(context, sha256));
  const frames = RequestFrames.chunked({
    content,
    overheadBytes: FRAME_HEADER_BYTES + TAG_BYTES,
    encode: (chunk, seq, final) => {
      const { ciphertext, tag } = sender.sealParts(frameAad(seq, final), chunk);
      return encodeFrameParts({ type: 'request', final, seq, jobId: context.job_id }, ciphertext, tag);
    },
  });
  return { enc: sender.enc, frames, responseOpener: new ResponseOpener(context.job_id, responseSecret(sender)) };
}

function requireWithinLimit(requestBytes: number): void {
  if (requestBytes > MAX_VISION_REQUEST_BYTES) throw new SealingError('too_large', `request of ${requestBytes} bytes is over the cap`);
}

/** Opens and joins the request frames of one job. A rejected frame changes nothing: the same sequence number is still expected. */
export class RequestOpener {
  readonly #context: JobContext;
  readonly #recipient: RecipientContext;
  readonly #requestBytes: number;
  /** Body and attachments so far; null before the first frame, and for a request of one frame. */
  #plaintext: Uint8Array | null = null;
  #receivedBytes = 0;
  #nextSeq = 0;
  #isComplete = false;
  #sealer: ResponseSealer | null = null;

  /**
   * A wrong key or context is detected only at the first frame.
   *
   * @param requestBytes Announced plaintext bytes of body and attachments.
   * @throws {SealingError} `too_large` above {@link MAX_VISION_REQUEST_BYTES}, `bad_key` if `enc` is no valid key.
   */
  constructor(context: JobContext, enc: Uint8Array, key: SealingKeyPair, requestBytes: number) {
    requireWithinLimit(requestBytes);
    this.#context = context;
    this.#requestBytes = requestBytes;
    this.#recipient = setupRecipient(key, enc, jobInfo(context, sha256));
  }

  /**
   * Opens the next frame. Returns null until the final frame, then body and attachments, joined.
   *
   * @throws {SealingError} `after_final`, `wrong_frame`, `out_of_order`, `too_large`, `size_mismatch` or `open_failed`.
   */
  accept(frame: Frame): Uint8Array | null {
    if (this.#isComplete) throw new SealingError('after_final', 'a request frame follows the final one');
    if (frame.type !== 'request' || frame.jobId !== this.#context.job_id)
      throw new SealingError('wrong_frame', 'not a frame of this request');
    if (frame.seq !== this.#nextSeq) throw new SealingError('out_of_order', `request frame ${frame.seq} came in place of ${this.#nextSeq}`);
    const total = this.#receivedBytes + frame.payload.length - TAG_BYTES;
    if (total > this.#requestBytes) throw new SealingError('too_large', 'the request has more bytes than announced');
    if (frame.final && total !== this.#requestBytes) throw new SealingError('size_mismatch', 'the request has fewer bytes than announced');
    const plaintext = this.#recipient.open(frameAad(frame.seq, frame.final), frame.payload);
    this.#nextSeq++;
    this.#isComplete = frame.final;
    // Single-frame requests, the common case, need no copy.
    if (frame.final && this.#plaintext === null) return plaintext;
    this.#plaintext ??= new Uint8Array(this.#requestBytes);
    this.#plaintext.set(plaintext, this.#receivedBytes);
    plaintext.fill(0);
    this.#receivedBytes = total;
    return frame.final ? this.#plaintext : null;
  }

  /** Zeroes the plaintext of an incomplete request. Has no effect after `accept` returned the request, which belongs to the caller. */
  erase(): void {
    if (!this.#isComplete) this.#plaintext?.fill(0);
  }

  /** Sealer of the job's response, the same for every call. Throws SealingError `incomplete` before the final frame. */
  responseSealer(): ResponseSealer {
    if (!this.#isComplete) throw new SealingError('incomplete', 'the request is not complete');
    // A second sealer would begin at sequence number 0 again, and so reuse nonces under the same key.
    this.#sealer ??= new ResponseSealer(this.#context.job_id, responseSecret(this.#recipient));
    return this.#sealer;
  }
}
