/**
 * Removes white space around think segments, which models separate by blank lines:
 *
 * - Leading white space, at most 16 characters, is dropped before a segment.
 * - After a segment, all white space is dropped until the first visible text.
 * - After a segment on its own line, blank lines are dropped, but not the next line's indentation.
 */
type State = 'start' | 'nothing_visible_yet' | 'after_section' | 'in_text';

/** Longer leading white space is text, so that stop sequences do not wait forever. */
const MAX_LEADING_SPACE = 16;

export class SectionGap {
  #state: State = 'start';
  /** White space visible only if text follows. */
  #held = '';
  /** The visible text so far is not empty and ends with a line break. */
  #isAtLineStart = false;

  /** Visible part of a text. */
  text(text: string): string {
    if (this.#state === 'in_text') return this.#show(text);
    const start = text.search(/[^ \t\r\n]/);
    this.#withholdSpace(start === -1 ? text : text.slice(0, start));
    const tooMuch = this.#state === 'start' && this.#held.length > MAX_LEADING_SPACE;
    if (start === -1 && !tooMuch) return '';
    const shown = start === -1 ? this.#held : this.#held + text.slice(start);
    this.#held = '';
    this.#state = 'in_text';
    return this.#show(shown);
  }

  /** Records a tag at this place, opening or closing. */
  tag(): void {
    this.#held = '';
    if (this.#state === 'start') this.#state = 'nothing_visible_yet';
    else if (this.#state === 'in_text' && this.#isAtLineStart) this.#state = 'after_section';
  }

  /** Remaining visible text at the end. */
  end(): string {
    const shown = this.#state === 'start' ? this.#held : '';
    this.#held = '';
    return shown;
  }

  #withholdSpace(space: string): void {
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
    if (text !== '') this.#isAtLineStart = text.endsWith('\n');
    return text;
  }
}
