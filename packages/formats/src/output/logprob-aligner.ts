/**
 * `LogprobAligner`: log probabilities of the visible text. A token is emitted, reduced to its visible characters, once all are
 * decided.
 */
import type { TokenLogprob } from '../output-event.ts';

/** A token with preceding tokens without text. */
interface Owner {
  readonly logprobs: readonly TokenLogprob[];
  /** Units whose visibility is still undecided. */
  open: number;
  /** Visible part of the token's text. */
  shown: string;
}

interface Stretch {
  readonly owner: Owner;
  readonly text: string;
  at: number;
}

const encoder = new TextEncoder();

export class LogprobAligner {
  readonly #unsettled: Stretch[] = [];
  /** Visible units not yet emitted. */
  readonly #visible: Stretch[] = [];
  /** Tokens without text (partial characters), attached to the token that completes the character. */
  #textless: readonly TokenLogprob[] = [];
  /** The token whose text was shown last. */
  #current: Owner | null = null;

  /** Adds text with its tokens. */
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

  /** Marks the next `length` units as hidden (inside a think segment, tags included) or visible. */
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

  /** Tokens completed by emitting `shown`. Skips text dropped before it. */
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

  /** Final token, partially visible. */
  end(): TokenLogprob[] {
    const taken: TokenLogprob[] = [];
    this.#leave(taken);
    return taken;
  }

  #pass(unit: string): Owner | null {
    for (;;) {
      const stretch = this.#visible[0];
      if (stretch === undefined) return null;
      const isMatch = stretch.text[stretch.at++] === unit;
      stretch.owner.open -= 1;
      if (stretch.at === stretch.text.length) this.#visible.shift();
      if (isMatch) return stretch.owner;
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
