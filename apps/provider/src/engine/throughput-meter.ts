/**
 * `ThroughputMeter` measures prefill and decode throughput of one stream, when the engine delivers text and not when text is read.
 *
 * The time in which a slow reader pauses the stream is not counted.
 */

/** Minimum prompt tokens for a measurement; shorter prompts measure mainly other load. */
const MIN_PROMPT = 64;
/** Minimum tokens after the first ones for a measurement. */
const MIN_TOKENS = 8;
/** Minimum time for a measurement. A delayed daemon reads all waiting deliveries at once: shorter times measure how fast it reads. */
const MIN_DECODE_MS = 10;

export class ThroughputMeter {
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

  /** Null for too few tokens or too short a time. */
  tokensPerSecond(): number | null {
    if (this.#first === null) return null;
    const decodeMs = this.#lastAt - this.#first.at - this.#pausedMs;
    const tokens = this.#tokens - this.#first.tokens;
    return tokens < MIN_TOKENS || decodeMs < MIN_DECODE_MS ? null : (1000 * tokens) / decodeMs;
  }

  /** `computed`: uncached prompt tokens. Null for too few tokens or without output. */
  promptTokensPerSecond(computed: number): number | null {
    if (this.#first === null) return null;
    const seconds = (this.#first.at - this.#beganAt) / 1000;
    return computed < MIN_PROMPT || seconds <= 0 ? null : computed / seconds;
  }
}
