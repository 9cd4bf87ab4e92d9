/**
 * Keeps log probabilities beside the text that they belong to, while filters hold back or drop parts of it. A token goes
 * out with the first of its characters that is shown; tokens of which nothing is shown do not go out at all.
 */
import type { TokenLogprob } from '../output-event.js';

interface Stretch {
  readonly text: string;
  /** Units that are settled, or shown. */
  at: number;
  logprobs: readonly TokenLogprob[];
}

export class LogprobTrail {
  /** Pieces of which it is not yet known on which side of a think tag they are. */
  readonly #pieces: Stretch[] = [];
  /** Visible stretches that were not shown yet. */
  readonly #visible: Stretch[] = [];
  /** Of tokens without text (part of a character); they belong to the piece that brings it. */
  #textless: readonly TokenLogprob[] = [];

  expect(text: string, logprobs: readonly TokenLogprob[]): void {
    const all = this.#textless.length === 0 ? logprobs : [...this.#textless, ...logprobs];
    this.#textless = text === '' ? all : [];
    if (text !== '') this.#pieces.push({ text, at: 0, logprobs: all });
  }

  /** The next `length` units lie inside a think section, tags included, or they do not. */
  settle(length: number, hidden: boolean): void {
    for (let left = length; left > 0; ) {
      const piece = this.#pieces[0];
      if (piece === undefined) return;
      const here = Math.min(left, piece.text.length - piece.at);
      if (!hidden) {
        this.#visible.push({ text: piece.text.slice(piece.at, piece.at + here), at: 0, logprobs: piece.logprobs });
        piece.logprobs = [];
      }
      piece.at += here;
      left -= here;
      if (piece.at === piece.text.length) this.#pieces.shift();
    }
  }

  /** Of the tokens that begin in a text that is shown now. What was dropped before it is passed over. */
  take(shown: string): TokenLogprob[] {
    const taken: TokenLogprob[] = [];
    for (let i = 0; i < shown.length; i++) {
      const stretch = this.#stretchWith(shown[i] ?? '');
      if (stretch === null) break;
      taken.push(...stretch.logprobs);
      stretch.logprobs = [];
    }
    return taken;
  }

  #stretchWith(unit: string): Stretch | null {
    for (;;) {
      const stretch = this.#visible[0];
      if (stretch === undefined) return null;
      if (stretch.at === stretch.text.length) this.#visible.shift();
      else if (stretch.text[stretch.at++] === unit) return stretch;
    }
  }
}
