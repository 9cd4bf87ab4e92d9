/** Measures one stream: how fast its prompt was read, and how fast it writes without that time. */

/** A shorter prompt says more of what else there was to do. Tokens. */
const MIN_PROMPT = 64;

export class Pace {
  readonly #beganAt = performance.now();
  #firstAt = 0;
  #firstTokens = 0;
  #lastAt = 0;
  #tokens = 0;

  /** `tokens`: all that were generated until now. */
  count(tokens: number): void {
    this.#lastAt = performance.now();
    this.#tokens = tokens;
    if (this.#firstAt > 0) return;
    this.#firstAt = this.#lastAt;
    this.#firstTokens = tokens;
  }

  /** Null when there were too few to tell. */
  tokensPerSecond(): number | null {
    const seconds = (this.#lastAt - this.#firstAt) / 1000;
    const tokens = this.#tokens - this.#firstTokens;
    return tokens < 8 || seconds <= 0 ? null : tokens / seconds;
  }

  /** `computed`: tokens of the prompt that were not known before. Null when they were too few to tell, or nothing was written. */
  promptTokensPerSecond(computed: number): number | null {
    const seconds = (this.#firstAt - this.#beganAt) / 1000;
    return computed < MIN_PROMPT || seconds <= 0 ? null : computed / seconds;
  }
}
