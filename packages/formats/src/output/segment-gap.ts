/**
 * `SegmentGap` removes white space around think segments, because models separate the segments from the answer by blank lines.
 *
 * - Before a segment at the start of the output, up to 16 characters of white space are dropped.
 * - After a segment at the start of the output, all white space is dropped until the first visible text.
 * - After a later segment that starts at the beginning of a line, blank lines are dropped, but not the indentation of the next line.
 */
type State = 'start' | 'nothing_visible_yet' | 'after_segment' | 'in_text';

/** Longer leading white space is visible, so that stop sequences within it are found. */
const MAX_LEADING_SPACE = 16;

export class SegmentGap {
  #state: State = 'start';
  /** Withheld white space, which becomes visible only if text follows. */
  #held = '';
  /** The visible text so far ends with a line break. */
  #isAtLineStart = false;

  /** Adds text outside think segments. Returns the part that is visible now. */
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

  /** Records an opening or closing tag at this position. */
  tag(): void {
    this.#held = '';
    if (this.#state === 'start') this.#state = 'nothing_visible_yet';
    else if (this.#state === 'in_text' && this.#isAtLineStart) this.#state = 'after_segment';
  }

  /** Ends the output. Returns withheld white space that is visible. */
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
      case 'after_segment': {
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
