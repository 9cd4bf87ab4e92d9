/**
 * `Screen` shows `status --watch` on the whole terminal, with a hidden cursor and raw keys, until `close` restores the terminal.
 *
 * Each frame overwrites the previous one in a single write, so that nothing flickers.
 */
import type { ReadStream, WriteStream } from 'node:tty';
import type { Line, Size } from './frame.js';

const ENTER = '\u001b[?1049h\u001b[?25l';
const LEAVE = '\u001b[?25h\u001b[?1049l';
/** Synchronized output; terminals without support ignore the sequence. */
const BEGIN_FRAME = '\u001b[?2026h\u001b[H';
const END_FRAME = '\u001b[J\u001b[?2026l';
/** After a resize, terminals retain parts of the previous frame. */
const CLEAR_SCREEN = '\u001b[2J';
const TO_LINE_END = '\u001b[K';
const PLAIN = '\u001b[0m';

const STYLES: Readonly<Record<Line['style'], string>> = {
  plain: '',
  strong: '\u001b[1m',
  good: '\u001b[1;32m',
  bad: '\u001b[1;31m',
  dim: '\u001b[2m',
};
/** For users who disable colours (no-color.org). */
const STYLES_WITHOUT_COLOUR: Readonly<Record<Line['style'], string>> = {
  plain: '',
  strong: '\u001b[1m',
  good: '\u001b[1m',
  bad: '\u001b[1m',
  dim: '',
};

interface ScreenOptions {
  readonly output: WriteStream;
  /** Null if keys cannot be read. */
  readonly input: ReadStream | null;
  readonly colours: boolean;
  readonly onKey: (key: string) => void;
  /** Called after a resize, and when the process continues after a stop. */
  readonly onRedraw: () => void;
}

export class Screen {
  readonly #options: ScreenOptions;
  readonly #onData = (data: Buffer): void => this.#options.onKey(data.toString('utf8'));
  readonly #onExit = (): void => this.close();
  readonly #onResize = (): void => {
    this.#isStale = true;
    this.#options.onRedraw();
  };
  #isOpen = true;
  #isStale = false;

  constructor(options: ScreenOptions) {
    this.#options = options;
    const { output, input } = options;
    output.write(ENTER);
    output.on('resize', this.#onResize);
    process.on('SIGCONT', this.#onResize);
    process.on('exit', this.#onExit);
    input?.setRawMode(true);
    input?.on('data', this.#onData);
    input?.resume();
  }

  get size(): Size {
    const { columns, rows } = this.#options.output;
    return { columns: columns || 80, rows: rows || 24 };
  }

  draw(lines: readonly Line[]): void {
    if (!this.#isOpen) return;
    const styles = this.#options.colours ? STYLES : STYLES_WITHOUT_COLOUR;
    const styled = lines.map(({ text, style }) => `${styles[style]}${text}${styles[style] === '' ? '' : PLAIN}${TO_LINE_END}`);
    const clear = this.#isStale ? CLEAR_SCREEN : '';
    this.#isStale = false;
    // No line feed follows the last line, because it would scroll a full screen.
    this.#options.output.write(`${BEGIN_FRAME}${clear}${styled.join('\r\n')}${END_FRAME}`);
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    const { output, input } = this.#options;
    output.removeListener('resize', this.#onResize);
    process.removeListener('SIGCONT', this.#onResize);
    process.removeListener('exit', this.#onExit);
    input?.removeListener('data', this.#onData);
    input?.setRawMode(false);
    input?.pause();
    output.write(LEAVE);
  }
}
