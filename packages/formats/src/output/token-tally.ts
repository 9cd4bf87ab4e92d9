/**
 * Counts the tokens that lie in think sections. Which side a character is on may be known only pieces later (a tag can be
 * split), so each piece waits until all its characters are settled, in order.
 */

interface Piece {
  readonly length: number;
  readonly tokens: number;
  unsettled: number;
  hidden: number;
}

export class TokenTally {
  /** Pieces with characters still unsettled, oldest first. Never more than a tag is long. */
  readonly #pieces: Piece[] = [];
  /** Tokens that came without text (part of a character); they belong to the piece that brings it. */
  #textless = 0;
  #hidden = 0;

  get hidden(): number {
    return this.#hidden;
  }

  /** A piece of `length` characters (UTF-16 units) and `tokens` tokens begins. */
  expect(length: number, tokens: number): void {
    this.#textless += tokens;
    if (length === 0) return;
    this.#pieces.push({ length, tokens: this.#textless, unsettled: length, hidden: 0 });
    this.#textless = 0;
  }

  /** The next `length` characters lie inside (or are tags of) a think section, or they do not. */
  settle(length: number, hidden: boolean): void {
    let left = length;
    while (left > 0) {
      const piece = this.#pieces[0];
      if (piece === undefined) throw new RangeError('more characters were settled than expected');
      const here = Math.min(left, piece.unsettled);
      piece.unsettled -= here;
      if (hidden) piece.hidden += here;
      left -= here;
      if (piece.unsettled > 0) return;
      this.#hidden += Math.round((piece.tokens * piece.hidden) / piece.length);
      this.#pieces.shift();
    }
  }

  /** Nothing follows: tokens that never got a text are hidden if a think section is open. */
  end(insideThinking: boolean): void {
    if (insideThinking) this.#hidden += this.#textless;
    this.#textless = 0;
  }
}
