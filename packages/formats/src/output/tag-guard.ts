/**
 * Prevents new tags: removing a segment can join the halves of another tag (`<thi<think></think>nk>`). Drops the character that would
 * complete such a tag, and changes nothing else.
 */
import { Automaton } from './automaton.js';

export class TagGuard {
  readonly #automata: readonly Automaton[];

  constructor(tags: readonly string[]) {
    this.#automata = tags.map((tag) => new Automaton(tag));
  }

  /** Visible text without a character that would complete a tag. */
  text(text: string): string {
    let shown = '';
    let from = 0;
    for (let i = 0; i < text.length; i++) {
      const unit = text.charCodeAt(i);
      if (this.#automata.some((automaton) => automaton.wouldComplete(unit))) {
        shown += text.slice(from, i);
        from = i + 1;
      } else for (const automaton of this.#automata) automaton.step(unit);
    }
    return from === 0 ? text : shown + text.slice(from);
  }
}
