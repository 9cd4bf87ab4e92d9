/**
 * White space around think sections. A model sets its section apart with blank lines; once the section is gone they
 * would stand in the answer for no reason:
 * - up to 16 characters of white space at the very start are dropped if a section follows them, and kept otherwise;
 * - after a section, all white space is dropped as long as nothing visible came before it;
 * - after a section that began on a line of its own, the rest of its line and blank lines are dropped, and the
 *   indentation of the next line is kept.
 */
type State = 'start' | 'nothing_visible_yet' | 'after_section' | 'in_text';

/** More white space than this at the start is text, so that it does not wait (for a stop sequence) without end. */
const MAX_LEADING_SPACE = 16;

export class SectionGap {
  #state: State = 'start';
  /** White space that is visible only if text follows. */
  #held = '';
  /** The visible text so far is not empty and ends with a line break. */
  #atLineStart = false;

  /** What of a visible text is shown now. */
  text(text: string): string {
    if (this.#state === 'in_text') return this.#show(text);
    const start = text.search(/[^ \t\r\n]/);
    this.#hold(start === -1 ? text : text.slice(0, start));
    const tooMuch = this.#state === 'start' && this.#held.length > MAX_LEADING_SPACE;
    if (start === -1 && !tooMuch) return '';
    const shown = start === -1 ? this.#held : this.#held + text.slice(start);
    this.#held = '';
    this.#state = 'in_text';
    return this.#show(shown);
  }

  /** A tag stands here, opening or closing. */
  tag(): void {
    this.#held = '';
    if (this.#state === 'start') this.#state = 'nothing_visible_yet';
    else if (this.#state === 'in_text' && this.#atLineStart) this.#state = 'after_section';
  }

  /** What is still to be shown at the end. */
  end(): string {
    const shown = this.#state === 'start' ? this.#held : '';
    this.#held = '';
    return shown;
  }

  #hold(space: string): void {
    switch (this.#state) {
      case 'start':
        this.#held += space;
        return;
      case 'after_section': {
        const lineBreak = space.lastIndexOf('\n');
        this.#held = lineBreak === -1 ? this.#held + space : space.slice(lineBreak + 1);
        return;
      }
      default:
    }
  }

  #show(text: string): string {
    if (text !== '') this.#atLineStart = text.endsWith('\n');
    return text;
  }
}
