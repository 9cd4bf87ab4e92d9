/**
 * For sealed (end-to-end encrypted) requests: `relayedRequestFrames` splits the request, `RelayedAnswerReader` reads the answer's frames.
 *
 * The reader checks structure, order and flow-control credit, and hashes the ciphertext, which the coordinator cannot decrypt.
 */
import {
  E2eAnswerMeter,
  E2eError,
  encodeFrame,
  FRAME_HEADER_BYTES,
  type Frame,
  INITIAL_CREDIT_BYTES,
  type JobId,
  RequestFrames,
} from '@inference/protocol';
import { nodeE2eCrypto } from '@inference/protocol/crypto';
import { AnswerCredit, type AnswerReader, type ReadResponse, type ResponseViolation } from './response-reader.js';

/** Splits the request that the client sealed into request frames, without a further layer of encryption. */
export function relayedRequestFrames(jobId: JobId, sealed: Uint8Array): RequestFrames {
  return RequestFrames.chunked({
    content: [sealed],
    overheadBytes: FRAME_HEADER_BYTES,
    encode: (payload, seq, final) => encodeFrame({ type: 'request', final, seq, jobId, payload }),
  });
}

export class RelayedAnswerReader implements AnswerReader {
  readonly #jobId: JobId;
  readonly #credit: AnswerCredit;
  readonly #meter = new E2eAnswerMeter(nodeE2eCrypto);
  #seq = 0;
  #isFinished = false;

  /** `onCredit` receives the number of bytes that the provider may send in addition. */
  constructor(jobId: JobId, onCredit: (bytes: number) => void) {
    this.#jobId = jobId;
    this.#credit = new AnswerCredit(INITIAL_CREDIT_BYTES, onCredit);
  }

  get isOutOfCredit(): boolean {
    return this.#credit.isUsedUp;
  }

  read({ type, jobId, seq, final, payload }: Frame): Uint8Array | ResponseViolation {
    if (this.#isFinished || type !== 'response' || jobId !== this.#jobId || seq !== this.#seq) return 'tampered_frame';
    this.#seq++;
    this.#isFinished = final;
    if (!this.#credit.spend(payload.length)) return 'credit_exceeded';
    try {
      this.#meter.push(payload);
    } catch (error) {
      if (error instanceof E2eError) return 'tampered_frame';
      throw error;
    }
    return payload;
  }

  drained(bytes: number): void {
    this.#credit.drained(bytes);
  }

  grantClosingCredit(): void {
    this.#credit.grantClosing();
  }

  end(): ReadResponse {
    return {
      finished: this.#isFinished && this.#meter.isFinal,
      hasTerminalEvent: true,
      // Null before the final frame. The empty string equals no hash, so verification then fails.
      responseSha256: this.#meter.sealedSha256 ?? '',
      bytes: this.#meter.contentBytes,
      plaintextBytes: this.#meter.plaintextBytes,
      reportedUsage: [],
    };
  }
}
