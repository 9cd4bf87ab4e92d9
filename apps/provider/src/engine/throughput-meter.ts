/**
 * `ThroughputMeter` measures the prefill and decode throughput of one generation, from the times at which the engine delivers text.
 *
 * Time in which a slow reader paused the generation is not counted.
 */

/** Minimum computed prompt tokens for a measurement; shorter prompts measure mainly other load. */
const MIN_PREFILL_TOKENS = 64;
/** Minimum tokens after the first delivery for a measurement. */
const MIN_DECODE_TOKENS = 8;
/** Minimum time for a measurement. A delayed daemon reads all waiting deliveries at once, in less time than this. */
const MIN_DECODE_MS = 10;

export class ThroughputMeter {
  readonly #beganAt: number;
  #first: { readonly at: number; readonly tick: number; tokens: number } | null = null;
  #lastAt = 0;
  #tokens = 0;
  /** Time between the first and the last text in which the generation was paused, in milliseconds. */
  #pausedMs = 0;
  #resumedAt: number | null = null;

  constructor() {
    this.#beganAt = performance.now();
  }

  /** Counts the tokens of a delivered piece. `tick`: number of the delivery; pieces of one delivery have the same. */
  count(tokens: number, tick: number): void {
    const now = performance.now();
    this.#first ??= { at: now, tick, tokens: 0 };
    if (tick === this.#first.tick) this.#first.tokens += tokens;
    if (this.#resumedAt !== null) this.#pausedMs += Math.max(0, this.#resumedAt - this.#lastAt);
    this.#resumedAt = null;
    this.#lastAt = now;
    this.#tokens += tokens;
  }

  /** Call when a paused generation continues. The time since the last text then counts as pause. */
  resume(): void {
    this.#resumedAt = performance.now();
  }

  /** Null for too few tokens or too short a time. */
  decodeTokensPerSecond(): number | null {
    if (this.#first === null) return null;
    const decodeMs = this.#lastAt - this.#first.at - this.#pausedMs;
    const tokens = this.#tokens - this.#first.tokens;
    return tokens < MIN_DECODE_TOKENS || decodeMs < MIN_DECODE_MS ? null : (1000 * tokens) / decodeMs;
  }

  /** `computed`: uncached prompt tokens. Null for too few tokens or without output. */
  prefillTokensPerSecond(computed: number): number | null {
    if (this.#first === null) return null;
    const seconds = (this.#first.at - this.#beganAt) / 1000;
    return computed < MIN_PREFILL_TOKENS || seconds <= 0 ? null : computed / seconds;
  }
}
