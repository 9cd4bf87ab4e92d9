/** `ResponseReader` opens and hashes the response frames of an attempt in plain mode, and collects the reported usage. */
import { type Frame, INITIAL_CREDIT_BYTES, type JobContext, UsageReader, type UsageReport } from '@inference/protocol';
import { type ResponseHash, type ResponseOpener, responseHash, SealingError } from '@inference/protocol/crypto';

/** `unverifiable`: the stream has lines outside the hash that clients verify. */
export type ResponseViolation = 'tampered_frame' | 'credit_exceeded' | 'unverifiable';

export interface ReadResponse {
  /** The final frame was opened. */
  readonly finished: boolean;
  readonly responseSha256: string;
  /** Response bytes as delivered: hashed plaintext, or ciphertext before the final frame of a sealed answer. */
  readonly bytes: number;
  /** Upper bound of the plaintext bytes. */
  readonly plaintextBytes: number;
  readonly reportedUsage: UsageReport;
}

/** Reads the frames of one attempt's response. */
export interface AnswerReader {
  /** The provider may send nothing before the client has drained more. */
  readonly isOutOfCredit: boolean;
  /** Bytes of the next frame for delivery, or the violated rule. */
  read(frame: Frame): Uint8Array | ResponseViolation;
  /** The client's connection took this many bytes. */
  drained(bytes: number): void;
  /** The client disconnected: bytes held by the provider may still arrive. */
  grantClosingCredit(): void;
  /** Summary of everything read. Called once, at the end. */
  end(): ReadResponse;
}

/** Extra credit for bytes written before the provider learned of the client's disconnect. Hashed and dropped. */
const CLOSING_CREDIT_BYTES = 4 * 1024 * 1024;
/** Returned credit is collected up to this many bytes: a long stream costs few messages. */
const CREDIT_STEP_BYTES = 64 * 1024;

const LF = 0x0a;
const CR = 0x0d;
const COLON = 0x3a;
const COMMENT = Buffer.from('\n:');

/** Bytes that a provider may send, granted as the client takes them. */
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

  /** False: the provider sent more than it might. */
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
  /** Null: the response is no stream. */
  readonly #lines: StreamLineCheck | null;
  /** Null: images, whose body is parsed when all parts have arrived. */
  readonly #usage: UsageReader | null;
  #bytes = 0;

  /** `onCredit` is called with additional bytes for the provider to send. */
  constructor(opener: ResponseOpener, { endpoint, stream }: Pick<JobContext, 'endpoint' | 'stream'>, onCredit: (bytes: number) => void) {
    this.#opener = opener;
    this.#credit = new AnswerCredit(INITIAL_CREDIT_BYTES, onCredit);
    this.#lines = stream ? new StreamLineCheck() : null;
    this.#usage = endpoint === '/v1/images/generations' ? null : new UsageReader(endpoint, stream);
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
    if (this.#lines?.accepts(plaintext) === false) return 'unverifiable';
    this.#hash.update(plaintext);
    this.#usage?.push(plaintext);
    this.#bytes += plaintext.length;
    return plaintext;
  }

  drained(bytes: number): void {
    this.#credit.drained(bytes);
  }

  grantClosingCredit(): void {
    this.#credit.grantClosing();
  }

  end(): ReadResponse {
    return {
      finished: this.#opener.finished,
      responseSha256: this.#hash.digestHex(),
      bytes: this.#bytes,
      plaintextBytes: this.#bytes,
      reportedUsage: this.#usage?.end() ?? [],
    };
  }
}

/** Rejects comments and carriage returns, on which SSE readers disagree or which clients do not hash. */
class StreamLineCheck {
  #lastByte = LF;

  accepts(bytes: Uint8Array): boolean {
    const last = bytes.at(-1);
    if (last === undefined) return true;
    const beginsComment = this.#lastByte === LF && bytes[0] === COLON;
    this.#lastByte = last;
    return !beginsComment && !includes(bytes, CR) && !includes(bytes, COMMENT);
  }
}

/** Buffer's vectorised search, on any Uint8Array. */
function includes(bytes: Uint8Array, value: number | Buffer): boolean {
  return Buffer.prototype.indexOf.call(bytes, value) !== -1;
}
