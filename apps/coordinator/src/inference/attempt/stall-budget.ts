/**
 * How long a provider that has attemptCount an answer may take for the rest. Time is spent while it could send, and given back for what it
 * sends and for its word that it is at work; both out of a store that is filled once, by the answer's longest length. So one that
 * trickles is noticed within minutes, and nothing holds a job for ever. Pure: times come in, in milliseconds.
 */
import type { LatencyEstimate, Work } from '@inference/scheduler';

export interface StallBudgetOptions {
  /** Time that may be spent without anything coming back. */
  readonly maxMs: number;
  /** What one token is expected to take. */
  readonly tokenMs: number;
  /** Tokens that the answer may have. */
  readonly maxTokens: number;
}

/** A machine may be this many times slower than it was thought to be; and no token has to come sooner than within a second. */
const SLOWER = 16;
const MIN_TOKEN_MS = 1000;
/** Bytes that count as a token: every format takes more for one that is streamed by itself. */
const TOKEN_BYTES = 16;
/** What there is beside that, for answers that are short and slow to be sent. */
const MIN_STORE_MS = 10 * 60_000;

export class StallBudget {
  readonly #maxMs: number;
  readonly #byteMs: number;
  #leftMs: number;
  #storeMs: number;

  constructor({ maxMs, tokenMs, maxTokens }: StallBudgetOptions) {
    const allowedMs = Math.max(MIN_TOKEN_MS, SLOWER * tokenMs);
    this.#maxMs = maxMs;
    this.#byteMs = allowedMs / TOKEN_BYTES;
    this.#leftMs = maxMs;
    this.#storeMs = Math.max(MIN_STORE_MS, maxTokens * allowedMs);
  }

  /** Whether it is over. */
  get isOver(): boolean {
    return this.#leftMs <= 0;
  }

  /** Time passed in which the provider could have sent something. */
  spend(ms: number): void {
    this.#leftMs -= ms;
  }

  /** Content came. */
  got(bytes: number): void {
    this.#give(bytes * this.#byteMs);
  }

  /** The provider says that it is at work on what does not show: thinking, or an answer that goes out whole. */
  working(): void {
    this.#give(this.#maxMs);
  }

  #give(ms: number): void {
    if (this.isOver) return;
    const given = Math.min(ms, this.#maxMs - this.#leftMs, this.#storeMs);
    this.#leftMs += given;
    this.#storeMs -= given;
  }
}

/** What a token is expected to take on the machine that an estimate is for, in milliseconds. `work`: what was estimated. */
export function expectedTokenMs({ firstTokenMs, completionMs }: LatencyEstimate, { completionTokens }: Work): number {
  return Math.max(0, completionMs - firstTokenMs) / Math.max(1, completionTokens);
}
