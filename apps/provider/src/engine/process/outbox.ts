/**
 * `Outbox` collects events of an engine process and sends them to the daemon in `tick` messages.
 *
 * A slow daemon gets fewer, larger messages. Before each round, the decoder waits for `untilReady()` if too many pieces are unsent.
 */
import type { TokenLogprob } from '@inference/formats';
import type { Ended, FromEngine, PieceLogprobs, Started } from '../messages.js';

/** Minimum milliseconds between messages, because each takes half a millisecond. A stream's first text and its end do not wait. */
const GAP_MS = 8;
/** Milliseconds since the last message after which `worked` sends a message. */
const WORK_GAP_MS = 1000;
/** Unsent entries of `#pieces`, three per piece, at which decoding waits. */
const MAX_UNSENT_ENTRIES = 3 * 8192;

type SendToDaemon = (message: FromEngine, written: () => void) => void;

export class Outbox {
  #started: Started[] = [];
  #pieces: (number | string)[] = [];
  #logprobs: PieceLogprobs[] = [];
  #ended: Ended[] = [];
  #hasWorked = false;
  /** Jobs that have started and have no text yet. */
  readonly #jobsWithoutText = new Set<number>();
  /** Whether the next message ignores the minimum gap. */
  #isUrgent = false;
  #isScheduled = false;
  #timer: NodeJS.Timeout | null = null;
  #lastFlush = 0;
  #isWriting = false;
  #resumeDecoding: (() => void)[] = [];

  constructor(private readonly send: SendToDaemon) {}

  /** Adds the event to the next message. Sends none itself: the daemon needs the event only with text, an end or progress. */
  started(event: Started): void {
    this.#started.push(event);
    this.#jobsWithoutText.add(event.job);
  }

  /** Either all pieces of a stream have `logprobs`, or none has. */
  piece(job: number, tokens: number, text: string, logprobs?: readonly TokenLogprob[]): void {
    this.#pieces.push(job, tokens, text);
    if (logprobs !== undefined) this.#logprobs.push({ job, logprobs });
    if (this.#jobsWithoutText.delete(job)) this.#flushSoon();
    else this.#schedule();
  }

  /** Reports progress on a prompt: sends a message, even without events, if the last one is old enough. */
  worked(): void {
    if (performance.now() - this.#lastFlush < WORK_GAP_MS) return;
    this.#hasWorked = true;
    this.#schedule();
  }

  ended(event: Ended): void {
    this.#ended.push(event);
    this.#jobsWithoutText.delete(event.job);
    this.#flushSoon();
  }

  #flushSoon(): void {
    this.#isUrgent = true;
    if (this.#timer !== null) {
      clearTimeout(this.#timer);
      this.#timer = null;
      setImmediate(this.#flush);
    } else this.#schedule();
  }

  /** Null if there is room for more pieces; else a promise that resolves when the unsent ones have been sent. */
  untilReady(): Promise<void> | null {
    if (this.#pieces.length < MAX_UNSENT_ENTRIES) return null;
    return new Promise((resolve) => this.#resumeDecoding.push(resolve));
  }

  #schedule(): void {
    if (this.#isScheduled || this.#isWriting) return;
    this.#isScheduled = true;
    const wait = this.#isUrgent ? 0 : this.#lastFlush + GAP_MS - performance.now();
    if (wait > 0) {
      this.#timer = setTimeout(this.#flush, wait);
      return;
    }
    // Flushes two event loop turns later, so that the next batch is computing while this thread writes.
    setImmediate(this.#flushNextTurn);
  }

  #flushNextTurn = (): void => {
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
    for (const resume of this.#resumeDecoding.splice(0)) resume();
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
