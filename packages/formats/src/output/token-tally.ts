/** `TokenTally` counts tokens in think segments. A piece waits until the visibility of all its characters is decided. */

interface Piece {
  readonly length: number;
  readonly tokens: number;
  unsettled: number;
  hidden: number;
}

export class TokenTally {
  /** Pieces with characters still unsettled, oldest first. Never more than a tag is long. */
  readonly #pieces: Piece[] = [];
  /** Tokens without text (partial characters), counted with the next piece that has text. */
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

  /** Marks the next `length` characters as inside a think segment (tags included) or outside. */
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

  /** End of output: trailing tokens without text are hidden inside an open segment. */
  end(insideThinking: boolean): void {
    if (insideThinking) this.#hidden += this.#textless;
    this.#textless = 0;
  }
}
