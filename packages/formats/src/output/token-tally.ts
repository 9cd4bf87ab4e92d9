/** `TokenTally` counts tokens in think segments. A piece of text counts in proportion to its hidden characters, once all are decided. */

/** Piece of generated text. Lengths in UTF-16 units. */
interface Piece {
  readonly length: number;
  readonly tokens: number;
  undecidedLength: number;
  hiddenLength: number;
}

export class TokenTally {
  /** Pieces with undecided characters, oldest first. At most as many as a tag has characters. */
  readonly #pieces: Piece[] = [];
  /** Tokens without text (parts of a character), which count with the next piece that has text. */
  #textlessTokens = 0;
  #hiddenTokens = 0;

  get hiddenTokens(): number {
    return this.#hiddenTokens;
  }

  /** Adds a piece of `length` characters (UTF-16 units) and `tokens` tokens. */
  expect(length: number, tokens: number): void {
    this.#textlessTokens += tokens;
    if (length === 0) return;
    this.#pieces.push({ length, tokens: this.#textlessTokens, undecidedLength: length, hiddenLength: 0 });
    this.#textlessTokens = 0;
  }

  /** Marks the next `length` characters as visible, or as hidden (in a think segment, or part of a tag). */
  settle(length: number, hidden: boolean): void {
    let remaining = length;
    while (remaining > 0) {
      const piece = this.#pieces[0];
      if (piece === undefined) throw new RangeError('more characters were settled than expected');
      const decided = Math.min(remaining, piece.undecidedLength);
      piece.undecidedLength -= decided;
      if (hidden) piece.hiddenLength += decided;
      remaining -= decided;
      if (piece.undecidedLength > 0) return;
      this.#hiddenTokens += Math.round((piece.tokens * piece.hiddenLength) / piece.length);
      this.#pieces.shift();
    }
  }

  /** Ends the output. Remaining tokens without text are hidden if a segment is open. */
  end(insideThinking: boolean): void {
    if (insideThinking) this.#hiddenTokens += this.#textlessTokens;
    this.#textlessTokens = 0;
  }
}
