/**
 * `Generation`: the daemon's handle of one text generation in the engine process. `Engine` creates it and feeds it.
 *
 * Iterating yields batches of text pieces. A slow reader pauses the engine; leaving the loop early cancels the generation.
 */
import type { TokenLogprob } from '@inference/formats';
import type { Ended, Started } from './messages.js';
import { ThroughputMeter } from './throughput-meter.js';

/** Text of one or more consecutive tokens. */
export interface Piece {
  readonly text: string;
  readonly tokens: number;
  /** Log probabilities of the tokens, if requested. */
  readonly logprobs?: readonly TokenLogprob[];
}

/** The engine ended a generation or an embedding request without finishing it; `ended` says why. */
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
/** Unread pieces at which a paused engine is asked to resume. */
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
    private readonly sendCommand: (command: StreamCommand) => void,
  ) {}

  /** Null until the engine begins to read the prompt. */
  get started(): Started | null {
    return this.#started;
  }

  /** Progress counter for stall timeouts. Grows with every `tick` of the engine, even before this generation starts. */
  get workCount(): number {
    return this.#workCount;
  }

  /** Decode tokens per second, from the first delivered piece to the last, without pauses. Null for too few tokens or too short a time. */
  get decodeTps(): number | null {
    return this.#meter.decodeTokensPerSecond();
  }

  /** Prefill tokens per second of the uncached part of the prompt. Null for too few tokens or without output. */
  get prefillTps(): number | null {
    const { promptTokens = 0, cachedTokens = 0 } = this.#started ?? {};
    return this.#meter.prefillTokensPerSecond(promptTokens - cachedTokens);
  }

  /** Number of delivered pieces that the reader has not taken. */
  get unread(): number {
    return this.#unread.length;
  }

  /** The result, once the iteration is over. Throws {@link GenerationError} if the engine did not finish. */
  outcome(): Outcome {
    if (this.#ended === null) throw new Error('the generation is still running');
    if (this.#ended.kind !== 'finished') throw new GenerationError(this.#ended);
    const { reason, completionTokens } = this.#ended;
    return { reason, completionTokens, promptTokens: this.#started?.promptTokens ?? 0 };
  }

  /** Asks the engine to stop. The iteration ends when the engine confirms. */
  cancel(): void {
    if (this.#ended === null) this.sendCommand('cancel');
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
      this.sendCommand('pause');
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
    if (this.#ended === null) this.sendCommand('resume');
  }

  #notify(): void {
    this.#wake?.();
    this.#wake = null;
  }
}
