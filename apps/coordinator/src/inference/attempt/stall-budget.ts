/**
 * `StallBudget` measures whether a provider makes enough progress over time. `Attempt` fails when the budget is exhausted.
 *
 * Waiting for the provider spends the budget. Output and progress messages refill it from a reserve, which is bounded too.
 */
import type { LatencyEstimate, Work } from '@inference/scheduler';

interface StallBudgetOptions {
  /** Maximum time without content or progress. */
  readonly maxMs: number;
  /** Expected time per output token. */
  readonly tokenMs: number;
  readonly maxTokens: number;
}

/** Maximum ratio of actual to expected time per token. */
const MAX_SLOWDOWN = 16;
const MIN_TOKEN_MS = 1000;
/** Assumed response bytes per token. A low estimate: a token streamed alone has more bytes, and thus refills its whole allowed time. */
const TOKEN_BYTES = 16;
/** Minimum of the reserve, in milliseconds, so that a short answer may be slow. */
const MIN_RESERVE_MS = 10 * 60_000;

export class StallBudget {
  readonly #maxMs: number;
  readonly #byteMs: number;
  #leftMs: number;
  #reserveMs: number;

  constructor({ maxMs, tokenMs, maxTokens }: StallBudgetOptions) {
    const allowedMs = Math.max(MIN_TOKEN_MS, MAX_SLOWDOWN * tokenMs);
    this.#maxMs = maxMs;
    this.#byteMs = allowedMs / TOKEN_BYTES;
    this.#leftMs = maxMs;
    this.#reserveMs = Math.max(MIN_RESERVE_MS, maxTokens * allowedMs);
  }

  get isExhausted(): boolean {
    return this.#leftMs <= 0;
  }

  /** Charges time spent waiting for the provider. */
  spend(ms: number): void {
    this.#leftMs -= ms;
  }

  received(bytes: number): void {
    this.#refill(bytes * this.#byteMs);
  }

  /** Refills the budget from the reserve: the provider reports work without output, such as thinking. */
  reportedProgress(): void {
    this.#refill(this.#maxMs);
  }

  #refill(ms: number): void {
    if (this.isExhausted) return;
    const returnedMs = Math.min(ms, this.#maxMs - this.#leftMs, this.#reserveMs);
    this.#leftMs += returnedMs;
    this.#reserveMs -= returnedMs;
  }
}

/** Expected time per output token, in milliseconds, from the estimate for a provider and the estimated work. */
export function expectedTokenMs({ firstTokenMs, completionMs }: LatencyEstimate, { completionTokens }: Work): number {
  return Math.max(0, completionMs - firstTokenMs) / Math.max(1, completionTokens);
}
