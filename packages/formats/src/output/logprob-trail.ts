/**
 * Keeps log probabilities beside the text that they belong to, while filters hold back or drop parts of it. A token goes
 * out once it is known which of its characters are shown, cut down to those; tokens of which nothing is shown do not go
 * out at all. So the tokens that went out, one after the other, are the text that was shown.
 */
import type { TokenLogprob } from '../output-event.js';

/** A token, with those before it that have no text of their own. */
interface Owner {
  readonly logprobs: readonly TokenLogprob[];
  /** Units of which it is not known yet on which side of a think tag they are, or whether they are shown. */
  open: number;
  /** What of its text was shown. */
  shown: string;
}

interface Stretch {
  readonly owner: Owner;
  readonly text: string;
  at: number;
}

const encoder = new TextEncoder();

export class LogprobTrail {
  readonly #unsettled: Stretch[] = [];
  /** What is visible and was not passed yet. */
  readonly #visible: Stretch[] = [];
  /** Tokens without text (part of a character); they belong to the one that brings it. */
  #textless: readonly TokenLogprob[] = [];
  /** The token whose text was shown last. */
  #current: Owner | null = null;

  /** The text that these tokens came to. */
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

  /** The next `length` units lie inside a think section, tags included, or they do not. */
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

  /** Tokens that are done with a text that is shown now. What was dropped before it is passed over. */
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

  /** Nothing more is shown: the token of which a part was. */
  end(): TokenLogprob[] {
    const taken: TokenLogprob[] = [];
    this.#leave(taken);
    return taken;
  }

  #pass(unit: string): Owner | null {
    for (;;) {
      const stretch = this.#visible[0];
      if (stretch === undefined) return null;
      const isIt = stretch.text[stretch.at++] === unit;
      stretch.owner.open -= 1;
      if (stretch.at === stretch.text.length) this.#visible.shift();
      if (isIt) return stretch.owner;
    }
  }

  #leave(taken: TokenLogprob[]): void {
    const owner = this.#current;
    this.#current = null;
    const last = owner?.logprobs.at(-1);
    if (owner === null || last === undefined) return;
    if (owner.shown === last.token) taken.push(...owner.logprobs);
    else taken.push({ ...last, token: owner.shown, bytes: [...encoder.encode(owner.shown)] });
  }
}
