/**
 * `PromptLookup` drafts tokens for speculative decoding, by n-gram lookup in prompt and output (prompt lookup decoding).
 *
 * A draft repeats the tokens that followed an earlier occurrence of the last tokens. The decoder verifies drafts, so they
 * change only the speed.
 */
import type { Token } from 'node-llama-cpp';
import { type DraftPolicy, MAX_DRAFT } from './draft-policy.js';

/** Minimum number of last tokens that must occur earlier. */
const MIN_MATCH = 3;

export class PromptLookup {
  readonly #tokens: Token[] = [];
  /** Position after the latest occurrence of `MIN_MATCH` tokens, by their hash. */
  readonly #ends = new Map<number, number>();
  /** Position of the predicted next token; null if the last tokens occur nowhere earlier. */
  #predicted: number | null = null;
  /** Number of last tokens that equal those before `#predicted`, up to `MAX_DRAFT`. */
  #matched = 0;

  constructor(private readonly policy: Pick<DraftPolicy, 'observe' | 'draftLength'>) {}

  /** Drafts up to `max` tokens that may follow `decoded` and `next`; none if the policy expects no gain. */
  draft(decoded: readonly Token[], next: Token, max: number): Token[] {
    this.#append(decoded, next);
    const start = this.#predicted;
    const length = this.policy.draftLength(this.#matched, start === null ? 0 : max);
    const draft: Token[] = [];
    if (start === null) return draft;
    // Past the last token of the stream, the draft repeats itself.
    for (let i = 0; i < length; i++) {
      const token = this.#tokens[start + i] ?? (draft[start + i - this.#tokens.length] as Token);
      // Placeholders of images are not tokens of the vocabulary.
      if (token < 0) break;
      draft.push(token);
    }
    return draft;
  }

  /** Appends the tokens decoded since the last call. The first call appends the prompt, which is no evidence for hit rates. */
  #append(decoded: readonly Token[], next: Token): void {
    const isFirst = this.#tokens.length === 0;
    for (let at = this.#tokens.length; at < decoded.length; at++) this.#push(decoded[at] as Token, !isFirst);
    this.#push(next, !isFirst);
  }

  #push(token: Token, isObserved: boolean): void {
    const isHit = this.#predicted !== null && this.#tokens[this.#predicted] === token;
    if (isObserved && this.#predicted !== null) this.policy.observe(this.#matched, isHit);
    const end = this.#tokens.push(token);
    const latest = end < MIN_MATCH ? undefined : this.#exchangeEnd(end);
    // A correct prediction extends its match: a longer match is more likely to continue than a more recent one.
    if (isHit) {
      this.#predicted = (this.#predicted as number) + 1;
      this.#matched = Math.min(MAX_DRAFT, this.#matched + 1);
      return;
    }
    this.#matched = latest === undefined ? 0 : this.#matchLength(latest);
    this.#predicted = latest === undefined || this.#matched < MIN_MATCH ? null : latest;
  }

  /** Registers the last tokens. Returns the end of their latest earlier occurrence, if any. Hashes may collide. */
  #exchangeEnd(end: number): number | undefined {
    let hash = 0;
    for (let at = end - MIN_MATCH; at < end; at++) hash = (Math.imul(hash, 0x9e3779b1) + (this.#tokens[at] as number)) | 0;
    const earlier = this.#ends.get(hash);
    this.#ends.set(hash, end);
    return earlier;
  }

  /** Number of tokens before `end` that equal the last tokens, up to `MAX_DRAFT`. */
  #matchLength(end: number): number {
    const { length } = this.#tokens;
    let count = 0;
    while (count < Math.min(end, MAX_DRAFT) && this.#tokens[end - 1 - count] === this.#tokens[length - 1 - count]) count++;
    return count;
  }
}
