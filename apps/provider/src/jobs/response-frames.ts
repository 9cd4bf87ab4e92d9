/**
 * Writes a response as sealed frames, within credit and socket back-pressure. Unsent bytes are buffered and leave in fewer, larger
 * frames; writers wait while the buffer is full. Plaintext is overwritten after sealing.
 */
import { utf8 } from '@inference/protocol';
import type { ResponseHash, ResponseSealer } from '@inference/protocol/crypto';

/** Maximum plaintext bytes of one frame. */
const FRAME_BYTES = 64 * 1024;
/** Buffered bytes at which the writer waits. */
const HOLD_BYTES = 64 * 1024;

export interface FrameSink {
  /** `sent` is called when the bytes have left, or never will. */
  sendFrame(bytes: Uint8Array, sent: () => void): void;
}

interface Held {
  readonly bytes: Uint8Array;
  /** The bytes are owned here and may be overwritten. */
  readonly own: boolean;
}

export class ResponseFrames {
  #held: Held[] = [];
  #heldBytes = 0;
  /** A frame is still being written to the socket; further text joins the next frame. */
  #sending = false;
  #credit: number;
  /** Bytes reserved for the final frame. */
  #reserved = 0;
  /** Bytes written, sent or not. */
  #written = 0;
  #wake: (() => void) | null = null;

  constructor(
    private readonly sealer: Pick<ResponseSealer, 'seal'>,
    /** Null: the writer hashes; only `writeUnsigned` is used. */
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

  /** Adds credit in plaintext bytes. */
  grant(bytes: number): void {
    this.#credit = Math.min(Number.MAX_SAFE_INTEGER, this.#credit + bytes);
    this.#moveOn();
  }

  /** Takes text on. Resolves when little is held; rejects with the signal's reason when the job ends meanwhile. */
  async write(text: string): Promise<void> {
    if (text === '') return;
    const bytes = utf8(text);
    this.hash?.update(bytes);
    await this.#push({ bytes, own: true });
  }

  /**
   * Like {@link write}, for unsigned bytes: images, whose hashes are in the receipt. The caller must not change the bytes before
   * `finish`.
   */
  async writeUnsigned(bytes: Uint8Array): Promise<void> {
    if (bytes.length > 0) await this.#push({ bytes, own: false });
  }

  async #push(held: Held): Promise<void> {
    this.#written += held.bytes.length;
    this.#held.push(held);
    this.#heldBytes += held.bytes.length;
    this.#sendWhatMay();
    while (this.#heldBytes > HOLD_BYTES) await this.#changed();
  }

  /** Sends the buffered bytes and the final frame. Rejects with the signal's reason if the job ends meanwhile. */
  async finish(): Promise<void> {
    // The last bytes travel in the final frame.
    this.#reserved = FRAME_BYTES;
    this.#sendWhatMay();
    while (this.#heldBytes > Math.min(FRAME_BYTES, this.#credit)) await this.#changed();
    this.signal.throwIfAborted();
    this.#send(this.#take(this.#heldBytes), true);
  }

  #sendWhatMay(): void {
    if (this.signal.aborted) return;
    while (this.#heldBytes > this.#reserved && this.#credit > 0 && !this.#sending) {
      this.#send(this.#take(Math.min(this.#heldBytes, this.#credit, FRAME_BYTES)), false);
    }
  }

  #send({ bytes, own }: Held, final: boolean): void {
    this.#credit -= bytes.length;
    const frame = this.sealer.seal(bytes, final);
    if (own) bytes.fill(0);
    this.#sending = true;
    this.sink.sendFrame(frame, () => {
      this.#sending = false;
      this.#moveOn();
    });
  }

  #take(length: number): Held {
    const [first] = this.#held;
    this.#heldBytes -= length;
    if (this.#held.length === 1 && first !== undefined && first.bytes.length === length) {
      this.#held = [];
      return first;
    }
    const taken = new Uint8Array(length);
    let filled = 0;
    let used = 0;
    for (const { bytes, own } of this.#held) {
      if (filled === length) break;
      const piece = bytes.subarray(0, length - filled);
      taken.set(piece, filled);
      filled += piece.length;
      if (piece.length < bytes.length) this.#held[used] = { bytes: bytes.subarray(piece.length), own };
      else used += 1;
      if (own) piece.fill(0);
    }
    this.#held.splice(0, used);
    return { bytes: taken, own: true };
  }

  /** Overwrites unsent bytes. */
  erase(): void {
    for (const { bytes, own } of this.#held.splice(0)) if (own) bytes.fill(0);
    this.#heldBytes = 0;
  }

  async #changed(): Promise<void> {
    this.signal.throwIfAborted();
    await new Promise<void>((resolve) => (this.#wake = resolve));
    this.signal.throwIfAborted();
  }

  /** Sends buffered bytes without a writer. */
  #moveOn(): void {
    this.#sendWhatMay();
    this.#notify();
  }

  #notify(): void {
    this.#wake?.();
    this.#wake = null;
  }
}
