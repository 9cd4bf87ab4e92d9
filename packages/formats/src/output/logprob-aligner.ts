/**
 * `LogprobAligner` matches log probabilities of generated tokens with the visible text.
 *
 * `ThinkFilter` decides which text is hidden; later filters delay or drop visible text. A token is emitted when all its characters are
 * decided and emitted, reduced to its visible characters. Tokens without visible characters are not emitted.
 */
import type { TokenLogprob } from '../output-event.js';

/** A token that is not emitted yet. `logprobs` ends with the token, after tokens without text; empty for text without log probabilities. */
interface PendingToken {
  readonly logprobs: readonly TokenLogprob[];
  /** Number of UTF-16 units that are neither hidden, dropped nor emitted yet. */
  remaining: number;
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
  readonly #undecided: TokenText[] = [];
  /** Visible text that was not emitted yet. */
  readonly #visible: TokenText[] = [];
  /** Tokens without text (parts of a character), which are emitted with the token that completes the character if all of it is visible. */
  #textless: readonly TokenLogprob[] = [];
  /** The token that the latest emitted text belongs to. */
  #current: PendingToken | null = null;

  /** Adds generated text and its tokens. */
  expect(text: string, logprobs: readonly TokenLogprob[]): void {
    const all = [...this.#textless, ...logprobs];
    let at = 0;
    let from = 0;
    for (const [index, { token }] of all.entries()) {
      // Token texts may not add up to the text; the last token gets the rest.
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
    this.#undecided.push({ owner: { logprobs, remaining: text.length, shown: '' }, text, at: 0 });
  }

  /** Marks the next `length` units as visible, or as hidden (in a think segment, or part of a tag). */
  settle(length: number, hidden: boolean): void {
    for (let left = length; left > 0; ) {
      const part = this.#undecided[0];
      if (part === undefined) return;
      const here = Math.min(left, part.text.length - part.at);
      if (hidden) part.owner.remaining -= here;
      else this.#visible.push({ owner: part.owner, text: part.text.slice(part.at, part.at + here), at: 0 });
      part.at += here;
      left -= here;
      if (part.at === part.text.length) this.#undecided.shift();
    }
  }

  /** Returns the tokens that the text `shown`, which is emitted now, completes. Skips visible text before it, which a filter dropped. */
  take(shown: string): TokenLogprob[] {
    const taken: TokenLogprob[] = [];
    for (const unit of shown.split('')) {
      const owner = this.#consumeUntil(unit);
      if (owner === null) break;
      if (owner !== this.#current) this.#emitCurrent(taken);
      this.#current = owner;
      owner.shown += unit;
    }
    if (this.#current?.remaining === 0) this.#emitCurrent(taken);
    return taken;
  }

  /** Call at the end of the output. Returns the unfinished token, if any, reduced to its visible part. */
  end(): TokenLogprob[] {
    const taken: TokenLogprob[] = [];
    this.#emitCurrent(taken);
    return taken;
  }

  /** Consumes visible text up to this unit, and returns the token of the unit; null if the visible text ends before. */
  #consumeUntil(unit: string): PendingToken | null {
    for (;;) {
      const part = this.#visible[0];
      if (part === undefined) return null;
      const isMatch = part.text[part.at++] === unit;
      part.owner.remaining -= 1;
      if (part.at === part.text.length) this.#visible.shift();
      if (isMatch) return part.owner;
    }
  }

  /** Emits the current token, reduced to its visible part. */
  #emitCurrent(taken: TokenLogprob[]): void {
    const owner = this.#current;
    this.#current = null;
    const last = owner?.logprobs.at(-1);
    if (owner === null || last === undefined) return;
    if (owner.shown === last.token) taken.push(...owner.logprobs);
    else taken.push({ ...last, token: owner.shown, bytes: [...encoder.encode(owner.shown)] });
  }
}
