/**
 * Collects what the streams of one tick produced and hands it over in one message. While a message is still being
 * written the next one keeps growing, so a daemon that is slow to read costs fewer, larger messages and not memory
 * without bound: streams ask `ready()` and wait when too much is unsent.
 */
import type { TokenLogprob } from '@inference/formats';
import type { Ended, FromEngine, PieceLogprobs, Started } from '../messages.js';

/**
 * Least time between two messages, in milliseconds. With what is rendered, sealed and sent of it, a message costs half a
 * millisecond: nothing to a model that makes fifty tokens a second, a sixth of a processor to one that makes a thousand. Less
 * than this no reader sees. The first words of a stream and its end do not wait.
 */
const GAP_MS = 8;
/** Most time between two messages while prompts are read, in milliseconds. */
const WORK_GAP_MS = 1000;
/** Unsent pieces (three entries each) at which streams stop and wait. */
const MAX_UNSENT_ENTRIES = 3 * 8192;

export type SendToDaemon = (message: FromEngine, written: () => void) => void;

export class Outbox {
  #started: Started[] = [];
  #pieces: (number | string)[] = [];
  #logprobs: PieceLogprobs[] = [];
  #ended: Ended[] = [];
  #worked = false;
  /** Streams of which no text was sent yet. */
  readonly #silent = new Set<number>();
  #urgent = false;
  #scheduled = false;
  #timer: NodeJS.Timeout | null = null;
  #lastFlush = 0;
  #writing = false;
  #waiting: (() => void)[] = [];

  constructor(private readonly send: SendToDaemon) {}

  /** Travels with whatever comes next: nobody needs it before there is text, an end, or other work. */
  started(event: Started): void {
    this.#started.push(event);
    this.#silent.add(event.job);
  }

  /** `logprobs`: of the piece's tokens, for all pieces of a stream or for none. */
  piece(job: number, tokens: number, text: string, logprobs?: readonly TokenLogprob[]): void {
    this.#pieces.push(job, tokens, text);
    if (logprobs !== undefined) this.#logprobs.push({ job, logprobs });
    if (this.#silent.delete(job)) this.#hurry();
    else this.#schedule();
  }

  /** Part of a prompt was read. Reported now and then, as a message in which nothing happened. */
  worked(): void {
    if (performance.now() - this.#lastFlush < WORK_GAP_MS) return;
    this.#worked = true;
    this.#schedule();
  }

  ended(event: Ended): void {
    this.#ended.push(event);
    this.#silent.delete(event.job);
    this.#hurry();
  }

  /** Sends what there is without waiting for the gap. */
  #hurry(): void {
    this.#urgent = true;
    if (this.#timer !== null) {
      clearTimeout(this.#timer);
      this.#timer = null;
      setImmediate(this.#flush);
    } else this.#schedule();
  }

  /** Null when more may be written now, else a promise that settles once the daemon has read on. */
  ready(): Promise<void> | null {
    if (this.#pieces.length < MAX_UNSENT_ENTRIES) return null;
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #schedule(): void {
    if (this.#scheduled || this.#writing) return;
    this.#scheduled = true;
    const wait = this.#urgent ? 0 : this.#lastFlush + GAP_MS - performance.now();
    if (wait > 0) {
      this.#timer = setTimeout(this.#flush, wait);
      return;
    }
    // Twice, so that the library has handed the next batch to its thread before this one is busy with writing.
    setImmediate(this.#afterDispatch);
  }

  #afterDispatch = (): void => {
    setImmediate(this.#flush);
  };

  #flush = (): void => {
    this.#scheduled = false;
    this.#timer = null;
    if (this.#empty && !this.#worked) return;
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
    this.#worked = false;
    this.#urgent = false;
    this.#writing = true;
    this.#lastFlush = performance.now();
    for (const resume of this.#waiting.splice(0)) resume();
    this.send(message, this.#written);
  };

  #written = (): void => {
    this.#writing = false;
    if (!this.#empty) this.#schedule();
  };

  get #empty(): boolean {
    return this.#started.length + this.#pieces.length + this.#ended.length === 0;
  }
}
