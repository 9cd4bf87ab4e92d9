/**
 * `Outbox` collects events of an engine process and sends them to the daemon in `tick` messages.
 *
 * A slow daemon gets fewer, larger messages. At a limit of unsent pieces, decoding waits for `untilReady()`.
 */
import type { TokenLogprob } from '@inference/formats';
import type { Ended, FromEngine, PieceLogprobs, Started } from '../messages.js';

/** Minimum milliseconds between messages; each takes half a millisecond. The first text and the end of a stream are sent at once. */
const GAP_MS = 8;
/** Maximum time between two messages while prompts are read, in milliseconds. */
const WORK_GAP_MS = 1000;
/** Unsent pieces (three entries each) at which streams wait. */
const MAX_UNSENT_ENTRIES = 3 * 8192;

type SendToDaemon = (message: FromEngine, written: () => void) => void;

export class Outbox {
  #started: Started[] = [];
  #pieces: (number | string)[] = [];
  #logprobs: PieceLogprobs[] = [];
  #ended: Ended[] = [];
  #hasWorked = false;
  /** Streams without any sent text. */
  readonly #withoutText = new Set<number>();
  #isUrgent = false;
  #isScheduled = false;
  #timer: NodeJS.Timeout | null = null;
  #lastFlush = 0;
  #isWriting = false;
  #waiting: (() => void)[] = [];

  constructor(private readonly send: SendToDaemon) {}

  /** Sent with the next message, because the daemon needs the event only with text, an end or progress. */
  started(event: Started): void {
    this.#started.push(event);
    this.#withoutText.add(event.job);
  }

  /** All pieces of a stream have `logprobs`, or none has. */
  piece(job: number, tokens: number, text: string, logprobs?: readonly TokenLogprob[]): void {
    this.#pieces.push(job, tokens, text);
    if (logprobs !== undefined) this.#logprobs.push({ job, logprobs });
    if (this.#withoutText.delete(job)) this.#flushSoon();
    else this.#schedule();
  }

  /** Reports progress on a prompt, at intervals, as a message without events. */
  worked(): void {
    if (performance.now() - this.#lastFlush < WORK_GAP_MS) return;
    this.#hasWorked = true;
    this.#schedule();
  }

  ended(event: Ended): void {
    this.#ended.push(event);
    this.#withoutText.delete(event.job);
    this.#flushSoon();
  }

  /** Sends without waiting for the minimum gap. */
  #flushSoon(): void {
    this.#isUrgent = true;
    if (this.#timer !== null) {
      clearTimeout(this.#timer);
      this.#timer = null;
      setImmediate(this.#flush);
    } else this.#schedule();
  }

  /** Null if streams may write now, else a promise that settles after the next flush. */
  untilReady(): Promise<void> | null {
    if (this.#pieces.length < MAX_UNSENT_ENTRIES) return null;
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #schedule(): void {
    if (this.#isScheduled || this.#isWriting) return;
    this.#isScheduled = true;
    const wait = this.#isUrgent ? 0 : this.#lastFlush + GAP_MS - performance.now();
    if (wait > 0) {
      this.#timer = setTimeout(this.#flush, wait);
      return;
    }
    // Two event loop turns, so the library has queued the next batch before this thread is busy with writing.
    setImmediate(this.#afterDispatch);
  }

  #afterDispatch = (): void => {
    setImmediate(this.#flush);
  };

  #flush = (): void => {
    this.#isScheduled = false;
    this.#timer = null;
    if (this.#empty && !this.#hasWorked) return;
    const message: FromEngine = {
      type: 'tick',
      started: this.#started,
      pieces: this.#pieces,
      logprobs: this.#logprobs,
      ended: this.#ended,
    };
    this.#started = [];
    this.#pieces = [];
    this.#logprobs = [];
    this.#ended = [];
    this.#hasWorked = false;
    this.#isUrgent = false;
    this.#isWriting = true;
    this.#lastFlush = performance.now();
    for (const resume of this.#waiting.splice(0)) resume();
    this.send(message, this.#written);
  };

  #written = (): void => {
    this.#isWriting = false;
    if (!this.#empty) this.#schedule();
  };

  get #empty(): boolean {
    return this.#started.length + this.#pieces.length + this.#ended.length === 0;
  }
}
