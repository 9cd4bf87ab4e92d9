/**
 * Time that a provider may spend on the rest of an answer that has begun. The time in which it could send is spent; content and progress
 * messages give time back, from a reserve that is sized once for the longest possible answer. So a trickling provider is found within
 * minutes, and no provider occupies a job for ever. Pure: times are arguments, in milliseconds.
 */
import type { LatencyEstimate, Work } from '@inference/scheduler';

export interface StallBudgetOptions {
  /** Time that may pass without content or progress. */
  readonly maxMs: number;
  /** Expected time per output token. */
  readonly tokenMs: number;
  /** Maximum output tokens. */
  readonly maxTokens: number;
}

/** A provider may be this many times slower than estimated. */
const MAX_SLOWDOWN = 16;
/** No token has to arrive sooner than this after the previous one. */
const MIN_TOKEN_MS = 1000;
/** Bytes that count as one token: every format needs more for a token that is streamed alone. */
const TOKEN_BYTES = 16;
/** Minimum reserve, for answers that are short and slow to send. */
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

  /** Charges time in which the provider could have sent something. */
  spend(ms: number): void {
    this.#leftMs -= ms;
  }

  received(bytes: number): void {
    this.#giveBack(bytes * this.#byteMs);
  }

  /** The provider reports work that is not visible yet: thinking, or an answer that is sent as a whole. */
  reportedProgress(): void {
    this.#giveBack(this.#maxMs);
  }

  #giveBack(ms: number): void {
    if (this.isExhausted) return;
    const returnedMs = Math.min(ms, this.#maxMs - this.#leftMs, this.#reserveMs);
    this.#leftMs += returnedMs;
    this.#reserveMs -= returnedMs;
  }
}

/** Expected time per output token on the provider of an estimate, in milliseconds. `work`: the estimated work. */
export function expectedTokenMs({ firstTokenMs, completionMs }: LatencyEstimate, { completionTokens }: Work): number {
  return Math.max(0, completionMs - firstTokenMs) / Math.max(1, completionTokens);
}
