/**
 * Seals a response in plain mode, under a key exported from the request's HPKE context (RFC 9180 section 9.8).
 *
 * `job-sealing.ts` creates sealer and opener. Sequence number and final flag of each frame are authenticated.
 */
import { utf8 } from '../bytes.js';
import type { JobId } from '../ids.js';
import { encodeFrameParts, type Frame, frameAad } from '../wire/frame.js';
import { MAX_FRAME_PAYLOAD_BYTES } from '../wire/limits.js';
import { type AeadSecret, KEY_BYTES, NONCE_BYTES, OpeningSequence, SealingSequence, TAG_BYTES } from './aead-sequence.js';
import { SealingError } from './sealing-error.js';

const KEY_LABEL = utf8('inference/response/v1 key');
const NONCE_LABEL = utf8('inference/response/v1 nonce');

/** Maximum plaintext bytes of one response frame. */
export const MAX_RESPONSE_CHUNK_BYTES = MAX_FRAME_PAYLOAD_BYTES - TAG_BYTES;

/** Key and base nonce of a job's response. */
export function responseSecret(context: { exportSecret(context: Uint8Array, length: number): Uint8Array }): AeadSecret {
  return { key: context.exportSecret(KEY_LABEL, KEY_BYTES), baseNonce: context.exportSecret(NONCE_LABEL, NONCE_BYTES) };
}

/** The provider's side: seals consecutive bytes of the response into frames. */
export class ResponseSealer {
  readonly #jobId: JobId;
  readonly #sequence: SealingSequence;
  #isFinished = false;

  constructor(jobId: JobId, secret: AeadSecret) {
    this.#jobId = jobId;
    this.#sequence = new SealingSequence(secret);
  }

  /**
   * Seals the next bytes and returns the encoded frame. The last frame is `final` and may be empty.
   *
   * @throws {SealingError} `too_large` above {@link MAX_RESPONSE_CHUNK_BYTES}, `after_final`, `exhausted`.
   */
  seal(plaintext: Uint8Array, final: boolean): Uint8Array {
    if (this.#isFinished) throw new SealingError('after_final', 'the response is already finished');
    if (plaintext.length > MAX_RESPONSE_CHUNK_BYTES) throw new SealingError('too_large', 'the response bytes do not fit one frame');
    const seq = this.#sequence.next;
    const { ciphertext, tag } = this.#sequence.sealParts(frameAad(seq, final), plaintext);
    this.#isFinished = final;
    return encodeFrameParts({ type: 'response', final, seq, jobId: this.#jobId }, ciphertext, tag);
  }
}

/** The coordinator's side: opens the frames in order. After a rejected frame, the same frame is still expected. */
export class ResponseOpener {
  readonly #jobId: JobId;
  readonly #sequence: OpeningSequence;
  #isFinished = false;

  constructor(jobId: JobId, secret: AeadSecret) {
    this.#jobId = jobId;
    this.#sequence = new OpeningSequence(secret);
  }

  /** Whether the final frame was opened. Without one, the response is truncated. */
  get finished(): boolean {
    return this.#isFinished;
  }

  /**
   * Returns the plaintext of the next frame.
   *
   * @throws {SealingError} `after_final`, `wrong_frame`, `out_of_order`, `open_failed` or `exhausted`.
   */
  open(frame: Frame): Uint8Array {
    if (this.#isFinished) throw new SealingError('after_final', 'a response frame follows the final one');
    if (frame.type !== 'response' || frame.jobId !== this.#jobId) throw new SealingError('wrong_frame', 'not a frame of this response');
    const expected = this.#sequence.next;
    if (frame.seq !== expected) throw new SealingError('out_of_order', `response frame ${frame.seq} came in place of ${expected}`);
    const plaintext = this.#sequence.open(frameAad(frame.seq, frame.final), frame.payload);
    this.#isFinished = frame.final;
    return plaintext;
  }
}
