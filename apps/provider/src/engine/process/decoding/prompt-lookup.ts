/**
 * `PromptLookup` drafts the next tokens of a stream: those that followed the latest earlier occurrence of its last tokens.
 *
 * Speculative decoding by n-gram lookup in prompt and output. The decoder verifies drafts, so they change speed only.
 */
import type { Token } from 'node-llama-cpp';

/** Maximum drafted tokens per batch. `findRepeatability` compares a batch of so many and the token before. */
export const MAX_DRAFT = 24;
/** Minimum number of last tokens that must occur earlier. */
const MIN_MATCH = 3;
/** Rounds that a stream may lose at its start. One round is the time of one token without a draft. */
const FIRST_ALLOWANCE = 3;
/** Rounds that a stream may lose per round, so rejected drafts cost at most 2 % of its time. */
const ALLOWANCE_PER_ROUND = 0.02;
const MAX_ALLOWANCE = 50;
/** Share of a new measurement in a running mean. */
const SMOOTHING = 0.2;

/** Measured times of batches with a single stream, shared by the streams of a context. */
export class DraftCost {
  #roundMs = 0;
  #perToken = 0.5;

  /** Time of one drafted token, in rounds. */
  get perToken(): number {
    return this.#perToken;
  }

  /** A round without a draft took this time, in milliseconds. */
  addRound(ms: number): void {
    this.#roundMs = this.#roundMs === 0 ? ms : mean(this.#roundMs, ms);
  }

  /** A round with a draft took this time, in milliseconds. Returns the extra time, in rounds. */
  addDraft(tokens: number, ms: number): number {
    if (this.#roundMs === 0) return tokens * this.#perToken;
    // A drafted token never takes longer than a round of its own; a longer time is other load on the machine.
    const extra = Math.min(tokens, Math.max(0, ms / this.#roundMs - 1));
    this.#perToken = mean(this.#perToken, extra / tokens);
    return extra;
  }
}

export class PromptLookup {
  readonly #tokens: Token[] = [];
  /** Position after the latest occurrence of `MIN_MATCH` tokens, by their hash. */
  readonly #ends = new Map<number, number>();
  /** Rounds that drafts may still lose. */
  #allowance = FIRST_ALLOWANCE;

  constructor(private readonly cost: DraftCost) {}

  /** Drafts up to `max` tokens that may follow `decoded` and `next`; none if no draft is likely to save time. */
  draft(decoded: readonly Token[], next: Token, max: number): Token[] {
    this.#append(decoded, next);
    this.#allowance = Math.min(MAX_ALLOWANCE, this.#allowance + ALLOWANCE_PER_ROUND);
    const end = this.#latestMatch();
    if (end === null) return [];
    const affordable = Math.floor(this.#allowance / Math.max(this.cost.perToken, 1 / MAX_DRAFT));
    // A long match is likely to continue.
    const length = Math.min(max, MAX_DRAFT, affordable, this.#matchLength(end));
    const draft: Token[] = [];
    // Beyond the last token, the draft continues with itself: a repetition.
    for (let i = 0; i < length; i++) {
      const token = this.#tokens[end + i] ?? (draft[end + i - this.#tokens.length] as Token);
      // Placeholders of images are no tokens of the vocabulary.
      if (token < 0) break;
      draft.push(token);
    }
    return draft;
  }

  /** Reports a verified draft: how many of its tokens were accepted, and the time of its batch in milliseconds. */
  verified(drafted: number, accepted: number, ms: number): void {
    this.#allowance += accepted - this.cost.addDraft(drafted, ms);
  }

  /** Appends the tokens that were decoded since the last call. */
  #append(decoded: readonly Token[], next: Token): void {
    for (let at = this.#tokens.length; at < decoded.length; at++) this.#push(decoded[at] as Token);
    this.#push(next);
  }

  /** Registers the tokens before `token`, so a lookup never finds the last tokens themselves. */
  #push(token: Token): void {
    const end = this.#tokens.length;
    if (end >= MIN_MATCH) this.#ends.set(this.#hashBefore(end), end);
    this.#tokens.push(token);
  }

  #latestMatch(): number | null {
    const { length } = this.#tokens;
    if (length <= MIN_MATCH) return null;
    const end = this.#ends.get(this.#hashBefore(length));
    return end !== undefined && this.#matchLength(end) >= MIN_MATCH ? end : null;
  }

  /** Number of tokens before `end` that equal the last tokens, up to `MAX_DRAFT`. */
  #matchLength(end: number): number {
    const { length } = this.#tokens;
    let count = 0;
    while (count < Math.min(end, MAX_DRAFT) && this.#tokens[end - 1 - count] === this.#tokens[length - 1 - count]) count++;
    return count;
  }

  #hashBefore(end: number): number {
    let hash = 0;
    for (let at = end - MIN_MATCH; at < end; at++) hash = (Math.imul(hash, 0x9e3779b1) + (this.#tokens[at] as number)) | 0;
    return hash;
  }
}

function mean(old: number, value: number): number {
  return old + SMOOTHING * (value - old);
}
