/**
 * `StopMatcher` finds stop sequences in streamed text. If several end at the same character, the longest wins.
 *
 * Takes amortized constant time per character and sequence. Chunk boundaries have no effect.
 */
import { Automaton } from './automaton.js';

export class StopMatcher {
  readonly #sequences: readonly string[];
  readonly #automata: readonly Automaton[];
  /** Withheld text that may be the start of a stop sequence. */
  #withheld = '';
  #match: string | null = null;

  /** `sequences` must not contain empty strings. */
  constructor(sequences: readonly string[]) {
    this.#sequences = sequences;
    this.#automata = sequences.map((sequence) => new Automaton(sequence));
  }

  get matched(): boolean {
    return this.#match !== null;
  }

  /** The matched sequence, or null. */
  get match(): string | null {
    return this.#match;
  }

  /** Adds text. Returns the part that is visible now; '' after a match. */
  push(piece: string): string {
    if (this.matched) return '';
    if (this.#automata.length === 0) return piece;
    const end = this.#endOfMatch(piece);
    const text = this.#withheld + piece;
    if (end === null) {
      const safeLength = text.length - this.#longestPrefix();
      this.#withheld = text.slice(safeLength);
      return text.slice(0, safeLength);
    }
    const match = this.#longestMatch();
    this.#match = match;
    const start = this.#withheld.length + end - match.length;
    this.#withheld = '';
    return text.slice(0, start);
  }

  /** Ends the text. Returns withheld text, which is not part of a stop sequence. */
  end(): string {
    const text = this.#withheld;
    this.#withheld = '';
    return text;
  }

  /** Offset after the first character that completes a sequence; null if there is none. */
  #endOfMatch(piece: string): number | null {
    for (let i = 0; i < piece.length; i++) {
      const unit = piece.charCodeAt(i);
      let complete = false;
      for (const automaton of this.#automata) complete = automaton.step(unit) || complete;
      if (complete) return i + 1;
    }
    return null;
  }

  #longestPrefix(): number {
    let longest = 0;
    for (const automaton of this.#automata) longest = Math.max(longest, automaton.length);
    return longest;
  }

  #longestMatch(): string {
    let longest = '';
    for (const [index, automaton] of this.#automata.entries()) {
      const sequence = this.#sequences[index] ?? '';
      if (automaton.complete && sequence.length > longest.length) longest = sequence;
    }
    return longest;
  }
}
