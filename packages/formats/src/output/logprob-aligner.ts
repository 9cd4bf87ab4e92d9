/**
 * `LogprobAligner` matches log probabilities of generated tokens with the visible text.
 *
 * Filters hide parts of the text and delay other parts. A token is emitted when the visibility of all its characters is decided,
 * reduced to its visible characters.
 */
import type { TokenLogprob } from '../output-event.js';

/** A token that is not emitted yet, preceded by tokens without text. */
interface PendingToken {
  readonly logprobs: readonly TokenLogprob[];
  /** Number of UTF-16 units that are neither hidden nor emitted yet. */
  open: number;
  /** Visible part of the token's text. */
  shown: string;
}

/** Text of one token, processed up to `at`. */
interface TokenText {
  readonly owner: PendingToken;
  readonly text: string;
  at: number;
}

const encoder = new TextEncoder();

export class LogprobAligner {
  /** Generated text whose visibility is not decided. */
  readonly #unsettled: TokenText[] = [];
  /** Visible text that was not emitted yet. */
  readonly #visible: TokenText[] = [];
  /** Tokens without text (parts of a character), which are emitted with the token that completes the character. */
  #textless: readonly TokenLogprob[] = [];
  /** The token that the latest emitted text belongs to. */
  #current: PendingToken | null = null;

  /** Adds generated text and its tokens. */
  expect(text: string, logprobs: readonly TokenLogprob[]): void {
    const all = [...this.#textless, ...logprobs];
    let at = 0;
    let from = 0;
    for (const [index, { token }] of all.entries()) {
      const end = index === all.length - 1 ? text.length : Math.min(text.length, at + token.length);
      if (end === at) continue;
      this.#expect(text.slice(at, end), all.slice(from, index + 1));
      at = end;
      from = index + 1;
    }
    this.#textless = all.slice(from);
    if (at < text.length) this.#expect(text.slice(at), []);
  }

  #expect(text: string, logprobs: readonly TokenLogprob[]): void {
    this.#unsettled.push({ owner: { logprobs, open: text.length, shown: '' }, text, at: 0 });
  }

  /** Marks the next `length` units as visible, or as hidden (in a think segment, or part of a tag). */
  settle(length: number, hidden: boolean): void {
    for (let left = length; left > 0; ) {
      const stretch = this.#unsettled[0];
      if (stretch === undefined) return;
      const here = Math.min(left, stretch.text.length - stretch.at);
      if (hidden) stretch.owner.open -= here;
      else this.#visible.push({ owner: stretch.owner, text: stretch.text.slice(stretch.at, stretch.at + here), at: 0 });
      stretch.at += here;
      left -= here;
      if (stretch.at === stretch.text.length) this.#unsettled.shift();
    }
  }

  /** Returns the tokens that are complete once `shown` is emitted. Skips visible text that a filter dropped before. */
  take(shown: string): TokenLogprob[] {
    const taken: TokenLogprob[] = [];
    for (const unit of shown.split('')) {
      const owner = this.#pass(unit);
      if (owner === null) break;
      if (owner !== this.#current) this.#leave(taken);
      this.#current = owner;
      owner.shown += unit;
    }
    if (this.#current?.open === 0) this.#leave(taken);
    return taken;
  }

  /** Call at the end of the output. Returns the last token, of which only a part may be visible. */
  end(): TokenLogprob[] {
    const taken: TokenLogprob[] = [];
    this.#leave(taken);
    return taken;
  }

  /** Consumes visible text up to this unit, and returns the token of the unit; null if the visible text ends before. */
  #pass(unit: string): PendingToken | null {
    for (;;) {
      const stretch = this.#visible[0];
      if (stretch === undefined) return null;
      const isMatch = stretch.text[stretch.at++] === unit;
      stretch.owner.open -= 1;
      if (stretch.at === stretch.text.length) this.#visible.shift();
      if (isMatch) return stretch.owner;
    }
  }

  /** Emits the current token, reduced to its visible part. */
  #leave(taken: TokenLogprob[]): void {
    const owner = this.#current;
    this.#current = null;
    const last = owner?.logprobs.at(-1);
    if (owner === null || last === undefined) return;
    if (owner.shown === last.token) taken.push(...owner.logprobs);
    else taken.push({ ...last, token: owner.shown, bytes: [...encoder.encode(owner.shown)] });
  }
}
