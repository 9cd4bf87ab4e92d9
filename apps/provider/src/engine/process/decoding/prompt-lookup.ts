/**
 * `PromptLookup` guesses the next tokens of one stream for speculative decoding ("prompt lookup decoding").
 *
 * The guess, called draft, repeats what followed an earlier occurrence of the last tokens in the prompt or output. The decoder accepts
 * only tokens that the model itself samples, so a wrong draft costs only time.
 */
import type { Token } from 'node-llama-cpp';
import { type DraftPolicy, MAX_DRAFT } from './draft-policy.js';

/** Minimum number of last tokens that must occur earlier. */
const MIN_MATCH = 3;

export class PromptLookup {
  readonly #tokens: Token[] = [];
  /** Key: hash of `MIN_MATCH` consecutive tokens. Value: position after their latest occurrence. */
  readonly #endByHash = new Map<number, number>();
  /** Earlier position of the guessed next token; null if the last tokens occur nowhere earlier. */
  #predicted: number | null = null;
  /** Number of last tokens that equal those before `#predicted`, up to `MAX_DRAFT`. */
  #matched = 0;

  constructor(private readonly policy: Pick<DraftPolicy, 'observe' | 'draftLength'>) {}

  /** Guesses up to `max` tokens after `decoded` and `next`; none if the policy expects no gain. Call once per round of the stream. */
  draft(decoded: readonly Token[], next: Token, max: number): Token[] {
    this.#append(decoded, next);
    const start = this.#predicted;
    const length = this.policy.draftLength(this.#matched, start === null ? 0 : max);
    const draft: Token[] = [];
    if (start === null) return draft;
    // Past the last token of the stream, the draft continues with its own beginning.
    for (let i = 0; i < length; i++) {
      const token = this.#tokens[start + i] ?? (draft[start + i - this.#tokens.length] as Token);
      // Placeholders of images are not tokens of the vocabulary.
      if (token < 0) break;
      draft.push(token);
    }
    return draft;
  }

  /** Appends the tokens decoded since the last call. Those of the first call are not observed: most are the prompt's. */
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
    // After a correct guess, keeps following that occurrence: a longer match continues more often than a more recent one.
    if (isHit) {
      this.#predicted = (this.#predicted as number) + 1;
      this.#matched = Math.min(MAX_DRAFT, this.#matched + 1);
      return;
    }
    this.#matched = latest === undefined ? 0 : this.#matchLength(latest);
    this.#predicted = latest === undefined || this.#matched < MIN_MATCH ? null : latest;
  }

  /** Registers the last tokens. Returns the end of their latest earlier occurrence, or of others with the same hash. */
  #exchangeEnd(end: number): number | undefined {
    let hash = 0;
    for (let at = end - MIN_MATCH; at < end; at++) hash = (Math.imul(hash, 0x9e3779b1) + (this.#tokens[at] as number)) | 0;
    const earlier = this.#endByHash.get(hash);
    this.#endByHash.set(hash, end);
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
