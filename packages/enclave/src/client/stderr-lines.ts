/** `StderrLines`: a helper's stderr as log lines, without control characters, bounded in length and number. */
import { LineSplitter } from '../contract/line-splitter.js';

const MAX_LINE = 512;
/** Maximum stderr lines per helper process; bounds the log of a helper in a loop. */
const MAX_LINES = 200;

export class StderrLines {
  readonly #splitter = new LineSplitter(8 * 1024);
  #passed = 0;

  /** Printable lines that end in these bytes. */
  *push(bytes: Uint8Array): Generator<string> {
    for (const line of this.#splitter.push(bytes)) {
      if (this.#passed === MAX_LINES) return;
      this.#passed++;
      if (this.#passed === MAX_LINES) yield '(further output of this helper is not shown)';
      else if (line.kind === 'line') yield toPrintable(line.text);
      else yield line.kind === 'too_long' ? '(a line too long to show)' : '(a line that is not text)';
    }
  }
}

/** Replaces control characters by spaces, and cuts the text at `MAX_LINE` characters. */
function toPrintable(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, ' ').slice(0, MAX_LINE);
}
