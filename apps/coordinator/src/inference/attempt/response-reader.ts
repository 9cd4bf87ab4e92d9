/** `ResponseReader` opens and hashes the response frames of an attempt in plain mode, and reads the usage that the response reports. */
import {
  BodyCheck,
  type Frame,
  INITIAL_CREDIT_BYTES,
  type JobContext,
  type RequiredMember,
  StreamCheck,
  UsageReader,
  type UsageReport,
} from '@inference/protocol';
import { type ResponseHash, type ResponseOpener, responseHash, SealingError } from '@inference/protocol/crypto';

/** An `unverifiable` response contains bytes that {@link StreamCheck} or {@link BodyCheck} rejects, or ends inside an event or object. */
export type ResponseViolation = 'tampered_frame' | 'credit_exceeded' | 'unverifiable';

export interface ReadResponse {
  /** Whether the final frame was read. */
  readonly finished: boolean;
  /** Whether a stream has the terminal event of its format. True for other responses, and in end-to-end mode, where the client checks. */
  readonly hasTerminalEvent: boolean;
  readonly responseSha256: string;
  /** Content bytes for the delivery: plaintext in plain mode, in end-to-end mode the ciphertext before its final frame. */
  readonly bytes: number;
  /** Upper bound of the plaintext bytes. Exact in plain mode. */
  readonly plaintextBytes: number;
  /** Token counts that the response body states. Empty in end-to-end mode and for images. */
  readonly reportedUsage: UsageReport;
}

/** Reads the response frames of one attempt. Implemented for both modes. */
export interface AnswerReader {
  /** Whether the provider may send nothing until the client has taken more bytes. */
  readonly isOutOfCredit: boolean;
  /** Returns the frame's bytes for delivery, or the rule that the frame violates. */
  read(frame: Frame): Uint8Array | ResponseViolation;
  drained(bytes: number): void;
  /** Grants extra credit after the client's disconnect, for bytes that the provider has already produced. */
  grantClosingCredit(): void;
  /** Summary of everything read. Called once, at the end. */
  end(): ReadResponse;
}

/** Extra credit after a client's disconnect, for output that the provider produced before it knew. The bytes are hashed and dropped. */
const CLOSING_CREDIT_BYTES = 4 * 1024 * 1024;
/** Credit is returned in steps of this size, to send few messages. */
const CREDIT_STEP_BYTES = 64 * 1024;

/** Flow control: bytes that a provider may still send. The client's reading adds credit. */
export class AnswerCredit {
  readonly #onCredit: (bytes: number) => void;
  #leftBytes: number;
  #drainedBytes = 0;

  constructor(initialBytes: number, onCredit: (bytes: number) => void) {
    this.#leftBytes = initialBytes;
    this.#onCredit = onCredit;
  }

  get isUsedUp(): boolean {
    return this.#leftBytes <= 0;
  }

  /** Charges received bytes. Returns false if the provider exceeded its credit. */
  spend(bytes: number): boolean {
    this.#leftBytes -= bytes;
    return this.#leftBytes >= 0;
  }

  drained(bytes: number): void {
    this.#drainedBytes += bytes;
    if (this.#drainedBytes < CREDIT_STEP_BYTES) return;
    this.#grant(this.#drainedBytes);
    this.#drainedBytes = 0;
  }

  grantClosing(): void {
    this.#grant(CLOSING_CREDIT_BYTES);
  }

  #grant(bytes: number): void {
    this.#leftBytes += bytes;
    this.#onCredit(bytes);
  }
}

export class ResponseReader implements AnswerReader {
  readonly #opener: ResponseOpener;
  readonly #credit: AnswerCredit;
  readonly #hash: ResponseHash = responseHash();
  /** Null if the response is not a stream. */
  readonly #stream: StreamCheck | null;
  /** Null if the response is a stream, or has images, which `ImageDelivery` checks. */
  readonly #body: BodyCheck | null;
  /** Null for an image response, whose usage `ImageDelivery` compares. */
  readonly #usage: UsageReader | null;
  readonly #readUsage = (bytes: Uint8Array): void => this.#usage?.push(bytes);
  #bytes = 0;

  /**
   * `terminalEvents` and `bodyMember`: see {@link StreamCheck} and {@link BodyCheck}. `onCredit` receives the number of bytes that the
   * provider may send in addition.
   */
  constructor(
    opener: ResponseOpener,
    { endpoint, stream }: Pick<JobContext, 'endpoint' | 'stream'>,
    { terminalEvents, bodyMember }: { readonly terminalEvents: readonly string[]; readonly bodyMember: RequiredMember | null },
    onCredit: (bytes: number) => void,
  ) {
    this.#opener = opener;
    this.#credit = new AnswerCredit(INITIAL_CREDIT_BYTES, onCredit);
    this.#stream = stream ? new StreamCheck(terminalEvents) : null;
    const isText = endpoint !== '/v1/images/generations';
    this.#body = stream || !isText ? null : new BodyCheck(bodyMember);
    this.#usage = isText ? new UsageReader(endpoint, stream) : null;
  }

  get isOutOfCredit(): boolean {
    return this.#credit.isUsedUp;
  }

  read(frame: Frame): Uint8Array | ResponseViolation {
    let plaintext: Uint8Array;
    try {
      plaintext = this.#opener.open(frame);
    } catch (error) {
      if (error instanceof SealingError) return 'tampered_frame';
      throw error;
    }
    if (!this.#credit.spend(plaintext.length)) return 'credit_exceeded';
    if (!this.#isAnswer(plaintext, frame.final)) return 'unverifiable';
    this.#hash.update(plaintext);
    this.#bytes += plaintext.length;
    return plaintext;
  }

  drained(bytes: number): void {
    this.#credit.drained(bytes);
  }

  grantClosingCredit(): void {
    this.#credit.grantClosing();
  }

  /** Whether clients read the bytes so far as an answer, and as the verifiers read them. Reads their usage. */
  #isAnswer(bytes: Uint8Array, isFinal: boolean): boolean {
    if (this.#stream !== null) return this.#stream.accepts(bytes, this.#readUsage) && (!isFinal || this.#stream.isBetweenEvents);
    this.#readUsage(bytes);
    return this.#body === null || (this.#body.accepts(bytes) && (!isFinal || this.#body.isComplete));
  }

  end(): ReadResponse {
    return {
      finished: this.#opener.finished,
      hasTerminalEvent: this.#stream?.isComplete ?? true,
      responseSha256: this.#hash.digestHex(),
      bytes: this.#bytes,
      plaintextBytes: this.#bytes,
      reportedUsage: this.#usage?.end() ?? [],
    };
  }
}
