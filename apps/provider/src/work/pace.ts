/** Measures the decode rate of one stream, without the time its prompt took. */

export class Pace {
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
}
