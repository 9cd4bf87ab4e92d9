/**
 * `Generation`: the daemon's handle of a text generation in the engine process, an async iterable of batches of pieces.
 *
 * A slow reader pauses the generation. Leaving the loop cancels it.
 */
import type { TokenLogprob } from '@inference/formats';
import type { Ended, Started } from './messages.js';

/** Text of one or more consecutive tokens. */
export interface Piece {
  readonly text: string;
  readonly tokens: number;
  /** Log probabilities of the tokens, if requested. */
  readonly logprobs?: readonly TokenLogprob[];
}

/** The engine did not finish the job: it was cancelled, invalid or failed. */
export class GenerationError extends Error {
  constructor(readonly ended: Exclude<Ended, { kind: 'finished' }>) {
    super(`the engine ended the job: ${ended.kind}`);
    this.name = 'GenerationError';
  }
}

export interface Outcome {
  readonly reason: 'stop' | 'length';
  readonly promptTokens: number;
  readonly completionTokens: number;
}

export type StreamCommand = 'cancel' | 'pause' | 'resume';

/** Unread pieces at which the engine is asked to pause. */
const PAUSE_AT = 256;
const RESUME_AT = 64;

export class Generation implements AsyncIterable<readonly Piece[]> {
  #unread: Piece[] = [];
  #started: Started | null = null;
  #ended: Ended | null = null;
  #workCount = 0;
  #isPaused = false;
  #wake: (() => void) | null = null;
  readonly #meter = new ThroughputMeter();

  constructor(
    readonly job: number,
    private readonly command: (command: StreamCommand) => void,
  ) {}

  /** Null until the engine begins to read the prompt. */
  get started(): Started | null {
    return this.#started;
  }

  /** Progress counter for stall timeouts. Grows with every `tick` of the engine, also while this stream waits for a sequence. */
  get workCount(): number {
    return this.#workCount;
  }

  /** Decode tokens per second, from the first delivered piece to the last. Null for too few tokens. */
  get decodeTps(): number | null {
    return this.#meter.tokensPerSecond();
  }

  /** Prefill tokens per second of the uncached part of the prompt. Null for too few tokens. */
  get prefillTps(): number | null {
    const { promptTokens = 0, cachedTokens = 0 } = this.#started ?? {};
    return this.#meter.promptTokensPerSecond(promptTokens - cachedTokens);
  }

  get unread(): number {
    return this.#unread.length;
  }

  /** Result after the iteration. Throws {@link GenerationError} when the stream did not finish. */
  outcome(): Outcome {
    if (this.#ended === null) throw new Error('the stream is still running');
    if (this.#ended.kind !== 'finished') throw new GenerationError(this.#ended);
    const { reason, completionTokens } = this.#ended;
    return { reason, completionTokens, promptTokens: this.#started?.promptTokens ?? 0 };
  }

  /** Stops decoding within one batch; the iteration ends. */
  cancel(): void {
    if (this.#ended === null) this.command('cancel');
  }

  /** `engineWorked`, `start`, `push` and `end` are called by `Engine` only. */
  engineWorked(): void {
    this.#workCount += 1;
  }

  start(started: Started): void {
    this.#started = started;
  }

  push(piece: Piece): void {
    this.#unread.push(piece);
    this.#meter.count(piece.tokens, this.#workCount);
    if (!this.#isPaused && this.#unread.length >= PAUSE_AT && this.#ended === null) {
      this.#isPaused = true;
      this.command('pause');
    }
    this.#notify();
  }

  end(ended: Ended): void {
    this.#ended ??= ended;
    this.#notify();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<readonly Piece[]> {
    try {
      for (;;) {
        if (this.#unread.length > 0) {
          const batch = this.#unread;
          this.#unread = [];
          yield batch;
          this.#resumeIfRead();
        } else if (this.#ended !== null) return;
        else await new Promise<void>((resolve) => (this.#wake = resolve));
      }
    } finally {
      this.cancel();
    }
  }

  #resumeIfRead(): void {
    if (!this.#isPaused || this.#unread.length > RESUME_AT) return;
    this.#isPaused = false;
    this.#meter.resume();
    if (this.#ended === null) this.command('resume');
  }

  #notify(): void {
    this.#wake?.();
    this.#wake = null;
  }
}

/**
 * `ThroughputMeter` measures prefill and decode throughput of one stream, when the engine delivers text and not when text is read.
 *
 * The time in which a slow reader pauses the stream is not counted.
 */

/** Minimum prompt tokens for a measurement; shorter prompts measure mainly other load. */
const MIN_PROMPT = 64;
/** Minimum tokens after the first ones for a measurement. */
const MIN_TOKENS = 8;

class ThroughputMeter {
  readonly #beganAt: number;
  #first: { readonly at: number; readonly tick: number; tokens: number } | null = null;
  #lastAt = 0;
  #tokens = 0;
  /** Time between the first and the last text in which the stream was paused, in milliseconds. */
  #pausedMs = 0;
  #resumedAt: number | null = null;

  constructor() {
    this.#beganAt = performance.now();
  }

  /** Counts delivered tokens. `tick`: number of the delivery; one delivery may contain several pieces. */
  count(tokens: number, tick: number): void {
    const now = performance.now();
    this.#first ??= { at: now, tick, tokens: 0 };
    if (tick === this.#first.tick) this.#first.tokens += tokens;
    if (this.#resumedAt !== null) this.#pausedMs += Math.max(0, this.#resumedAt - this.#lastAt);
    this.#resumedAt = null;
    this.#lastAt = now;
    this.#tokens += tokens;
  }

  /** Call when a paused stream goes on. The time since the last text counts as pause. */
  resume(): void {
    this.#resumedAt = performance.now();
  }

  /** Null for too few tokens. */
  tokensPerSecond(): number | null {
    if (this.#first === null) return null;
    const seconds = (this.#lastAt - this.#first.at - this.#pausedMs) / 1000;
    const tokens = this.#tokens - this.#first.tokens;
    return tokens < MIN_TOKENS || seconds <= 0 ? null : tokens / seconds;
  }

  /** `computed`: uncached prompt tokens. Null for too few tokens or without output. */
  promptTokensPerSecond(computed: number): number | null {
    if (this.#first === null) return null;
    const seconds = (this.#first.at - this.#beganAt) / 1000;
    return computed < MIN_PROMPT || seconds <= 0 ? null : computed / seconds;
  }
}
