/** `Automaton` finds one sequence in streamed text with the Knuth-Morris-Pratt algorithm, in amortized constant time per UTF-16 unit. */
export class Automaton {
  readonly #sequence: string;
  /** Length of the longest proper border of each prefix of the sequence. */
  readonly #borders: Uint32Array;
  #length = 0;

  constructor(sequence: string) {
    this.#sequence = sequence;
    this.#borders = new Uint32Array(sequence.length + 1);
    for (let end = 2; end <= sequence.length; end++) {
      this.#borders[end] = this.#extend(this.#border(end - 1), sequence.charCodeAt(end - 1));
    }
  }

  /** Length of the currently matched prefix of the sequence. */
  get length(): number {
    return this.#length;
  }

  get complete(): boolean {
    return this.#length === this.#sequence.length;
  }

  /** Whether this unit would complete the sequence. */
  wouldComplete(unit: number): boolean {
    return this.#length === this.#sequence.length - 1 && this.#sequence.charCodeAt(this.#length) === unit;
  }

  /** Consumes a unit. Returns true on a complete match, after which no further call is allowed. */
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
