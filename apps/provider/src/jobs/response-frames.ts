/**
 * `ResponseFrames` seals a response into frames and sends them within the coordinator's credit (bytes that may be sent).
 *
 * Writers wait while the buffer is full.
 */
import { utf8 } from '@inference/protocol';
import type { ResponseHash, ResponseSealer } from '@inference/protocol/crypto';

/** Maximum plaintext bytes of one frame. */
const FRAME_BYTES = 64 * 1024;
/** Buffered bytes above which writers wait. */
const MAX_BUFFERED_BYTES = 64 * 1024;

export interface FrameSink {
  /** Sends a frame. `sent` is called after the write, or once it is certain that the bytes will not be written. */
  sendFrame(bytes: Uint8Array, sent: () => void): void;
}

interface BufferedBytes {
  readonly bytes: Uint8Array;
  /** Whether the bytes are overwritten after use. */
  readonly isOwned: boolean;
}

export class ResponseFrames {
  #buffered: BufferedBytes[] = [];
  #bufferedBytes = 0;
  /** Whether a frame is being written to the socket. Further bytes wait and join the next frame. */
  #isSending = false;
  #credit: number;
  /** Bytes kept back for the final frame. */
  #reserved = 0;
  /** Bytes written, sent or not. */
  #written = 0;
  #wake: (() => void) | null = null;

  constructor(
    private readonly sealer: Pick<ResponseSealer, 'seal'>,
    /** Hash of the response text. Null if the caller hashes, and calls only `writeUnsigned`. */
    private readonly hash: Pick<ResponseHash, 'update'> | null,
    private readonly sink: FrameSink,
    credit: number,
    private readonly signal: AbortSignal,
  ) {
    this.#credit = credit;
    signal.addEventListener('abort', () => this.#notify(), { once: true });
  }

  get written(): number {
    return this.#written;
  }

  /** Adds credit, in bytes before sealing. */
  grant(bytes: number): void {
    this.#credit = Math.min(Number.MAX_SAFE_INTEGER, this.#credit + bytes);
    this.#sendPending();
  }

  /** Adds text. Resolves when the buffer has room. Rejects with the signal's reason if the job ends meanwhile. */
  async write(text: string): Promise<void> {
    if (text === '') return;
    const bytes = utf8(text);
    this.hash?.update(bytes);
    await this.#push({ bytes, isOwned: true });
  }

  /** Like {@link write}, but not hashed: for image parts and already sealed bytes. The caller must not change the bytes before `finish`. */
  async writeUnsigned(bytes: Uint8Array): Promise<void> {
    if (bytes.length > 0) await this.#push({ bytes, isOwned: false });
  }

  async #push(buffered: BufferedBytes): Promise<void> {
    this.#written += buffered.bytes.length;
    this.#buffered.push(buffered);
    this.#bufferedBytes += buffered.bytes.length;
    this.#sendAllowed();
    while (this.#bufferedBytes > MAX_BUFFERED_BYTES) await this.#changed();
  }

  /** Sends the buffered bytes and the final frame. Rejects with the signal's reason if the job ends meanwhile. */
  async finish(): Promise<void> {
    this.#reserved = FRAME_BYTES;
    this.#sendAllowed();
    while (this.#bufferedBytes > Math.min(FRAME_BYTES, this.#credit)) await this.#changed();
    this.signal.throwIfAborted();
    this.#send(this.#take(this.#bufferedBytes), true);
  }

  #sendAllowed(): void {
    if (this.signal.aborted) return;
    while (this.#bufferedBytes > this.#reserved && this.#credit > 0 && !this.#isSending) {
      this.#send(this.#take(Math.min(this.#bufferedBytes, this.#credit, FRAME_BYTES)), false);
    }
  }

  #send({ bytes, isOwned }: BufferedBytes, final: boolean): void {
    this.#credit -= bytes.length;
    const frame = this.sealer.seal(bytes, final);
    if (isOwned) bytes.fill(0);
    this.#isSending = true;
    this.sink.sendFrame(frame, () => {
      this.#isSending = false;
      this.#sendPending();
    });
  }

  #take(length: number): BufferedBytes {
    const [first] = this.#buffered;
    this.#bufferedBytes -= length;
    if (this.#buffered.length === 1 && first !== undefined && first.bytes.length === length) {
      this.#buffered = [];
      return first;
    }
    const taken = new Uint8Array(length);
    let filled = 0;
    let used = 0;
    for (const { bytes, isOwned } of this.#buffered) {
      if (filled === length) break;
      const piece = bytes.subarray(0, length - filled);
      taken.set(piece, filled);
      filled += piece.length;
      if (piece.length < bytes.length) this.#buffered[used] = { bytes: bytes.subarray(piece.length), isOwned };
      else used += 1;
      if (isOwned) piece.fill(0);
    }
    this.#buffered.splice(0, used);
    return { bytes: taken, isOwned: true };
  }

  /** Overwrites unsent bytes. */
  erase(): void {
    for (const { bytes, isOwned } of this.#buffered.splice(0)) if (isOwned) bytes.fill(0);
    this.#bufferedBytes = 0;
  }

  /** Resolves at the next change of credit or buffer. */
  async #changed(): Promise<void> {
    this.signal.throwIfAborted();
    await new Promise<void>((resolve) => (this.#wake = resolve));
    this.signal.throwIfAborted();
  }

  /** Sends buffered bytes and wakes the writer. */
  #sendPending(): void {
    this.#sendAllowed();
    this.#notify();
  }

  #notify(): void {
    this.#wake?.();
    this.#wake = null;
  }
}
