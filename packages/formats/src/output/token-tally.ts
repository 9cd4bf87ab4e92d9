/** `TokenTally` counts tokens in think segments. A piece counts in proportion to its hidden characters, once all are decided. */

interface Piece {
  readonly length: number;
  readonly tokens: number;
  unsettled: number;
  hidden: number;
}

export class TokenTally {
  /** Pieces with undecided characters, oldest first. At most as many as a tag has characters. */
  readonly #pieces: Piece[] = [];
  /** Tokens without text (parts of a character), which count with the next piece that has text. */
  #textless = 0;
  #hidden = 0;

  get hidden(): number {
    return this.#hidden;
  }

  /** Adds a piece of `length` characters (UTF-16 units) and `tokens` tokens. */
  expect(length: number, tokens: number): void {
    this.#textless += tokens;
    if (length === 0) return;
    this.#pieces.push({ length, tokens: this.#textless, unsettled: length, hidden: 0 });
    this.#textless = 0;
  }

  /** Marks the next `length` characters as visible, or as hidden (in a think segment, or part of a tag). */
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

  /** Ends the output. Remaining tokens without text are hidden if a segment is open. */
  end(insideThinking: boolean): void {
    if (insideThinking) this.#hidden += this.#textless;
    this.#textless = 0;
  }
}
