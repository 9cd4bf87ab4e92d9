/**
 * `Screen`: the terminal in full-screen mode, with alternate screen, hidden cursor and raw keys. Each frame overwrites the previous one
 * in a single write, so that nothing flickers. {@link Screen.close} always restores the terminal.
 */
import type { ReadStream, WriteStream } from 'node:tty';
import type { Line, Size } from './frame.js';

const ENTER = '\u001b[?1049h\u001b[?25l';
const LEAVE = '\u001b[?25h\u001b[?1049l';
/** Synchronized output; terminals without support ignore the sequence. */
const BEGIN_PICTURE = '\u001b[?2026h\u001b[H';
const END_PICTURE = '\u001b[J\u001b[?2026l';
/** After a resize, terminals retain parts of the previous frame. */
const WIPE = '\u001b[2J';
const TO_LINE_END = '\u001b[K';
const PLAIN = '\u001b[0m';

const STYLES: Readonly<Record<Line['style'], string>> = {
  plain: '',
  strong: '\u001b[1m',
  good: '\u001b[1;32m',
  bad: '\u001b[1;31m',
  dim: '\u001b[2m',
};
/** Styles without colours (no-color.org). */
const COLOURLESS: Readonly<Record<Line['style'], string>> = {
  plain: '',
  strong: '\u001b[1m',
  good: '\u001b[1m',
  bad: '\u001b[1m',
  dim: '',
};

interface ScreenOptions {
  readonly output: WriteStream;
  /** Null where keys cannot be read. */
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
  #open = true;
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
    if (!this.#open) return;
    const styles = this.#options.colours ? STYLES : COLOURLESS;
    const text = lines.map(({ text: words, style }) => `${styles[style]}${words}${styles[style] === '' ? '' : PLAIN}${TO_LINE_END}`);
    // No line feed after the last line: a full screen would scroll.
    const wipe = this.#isStale ? WIPE : '';
    this.#isStale = false;
    this.#options.output.write(`${BEGIN_PICTURE}${wipe}${text.join('\r\n')}${END_PICTURE}`);
  }

  close(): void {
    if (!this.#open) return;
    this.#open = false;
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
