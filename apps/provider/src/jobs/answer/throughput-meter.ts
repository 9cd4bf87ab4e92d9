/** `ThroughputMeter` measures prefill and decode throughput of one stream. */

/** Minimum prompt tokens for a measurement; shorter prompts measure mainly other load. */
const MIN_PROMPT = 64;

export class ThroughputMeter {
  readonly #beganAt = performance.now();
  #firstAt = 0;
  #firstTokens = 0;
  #lastAt = 0;
  #tokens = 0;

  /** Records the number of tokens generated so far. */
  count(tokens: number): void {
    this.#lastAt = performance.now();
    this.#tokens = tokens;
    if (this.#firstAt > 0) return;
    this.#firstAt = this.#lastAt;
    this.#firstTokens = tokens;
  }

  /** Decode rate; null for too few tokens. */
  tokensPerSecond(): number | null {
    const seconds = (this.#lastAt - this.#firstAt) / 1000;
    const tokens = this.#tokens - this.#firstTokens;
    return tokens < 8 || seconds <= 0 ? null : tokens / seconds;
  }

  /** Prefill rate of `computed` uncached prompt tokens; null for too few of them, or without output. */
  promptTokensPerSecond(computed: number): number | null {
    const seconds = (this.#firstAt - this.#beganAt) / 1000;
    return computed < MIN_PROMPT || seconds <= 0 ? null : computed / seconds;
  }
}
