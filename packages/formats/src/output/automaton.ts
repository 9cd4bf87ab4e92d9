/**
 * Knuth-Morris-Pratt: finds one sequence in a text that is read unit by unit, in constant time per unit on average and
 * without going back.
 */
export class Automaton {
  readonly #sequence: string;
  /** For each prefix of the sequence, the length of its longest proper prefix that is also its ending. */
  readonly #borders: Uint32Array;
  #length = 0;

  constructor(sequence: string) {
    this.#sequence = sequence;
    this.#borders = new Uint32Array(sequence.length + 1);
    for (let end = 2; end <= sequence.length; end++) {
      this.#borders[end] = this.#extend(this.#border(end - 1), sequence.charCodeAt(end - 1));
    }
  }

  /** Characters of the sequence that the text read so far ends with. */
  get length(): number {
    return this.#length;
  }

  get complete(): boolean {
    return this.#length === this.#sequence.length;
  }

  /** Whether this UTF-16 unit would complete the sequence. */
  wouldComplete(unit: number): boolean {
    return this.#length === this.#sequence.length - 1 && this.#sequence.charCodeAt(this.#length) === unit;
  }

  /** Reads a UTF-16 unit; true when it completes the sequence. Nothing may be read after that. */
  step(unit: number): boolean {
    this.#length = this.#extend(this.#length, unit);
    return this.complete;
  }

  #extend(length: number, unit: number): number {
    let candidate = length;
    while (candidate > 0 && this.#sequence.charCodeAt(candidate) !== unit) candidate = this.#border(candidate);
    return this.#sequence.charCodeAt(candidate) === unit ? candidate + 1 : candidate;
  }

  #border(length: number): number {
    return this.#borders[length] ?? 0;
  }
}
