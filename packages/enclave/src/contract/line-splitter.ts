/** `LineSplitter` splits bytes into lines of UTF-8 text. An overlong line is reported once and skipped. */
import { MAX_LINE_BYTES } from './requests.js';

export type Line =
  | { readonly kind: 'line'; readonly text: string }
  | { readonly kind: 'too_long' }
  /** The bytes are not well-formed UTF-8. */
  | { readonly kind: 'not_text' };

const LINE_FEED = 0x0a;

export class LineSplitter {
  /** Bytes of the unfinished line. */
  #parts: Uint8Array[] = [];
  /** Number of bytes in `#parts`. */
  #length = 0;
  /** True for the rest of an overlong line. */
  #isSkipping = false;
  /** Maximum bytes of a line. */
  readonly #cap: number;
  readonly #decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

  constructor(cap: number = MAX_LINE_BYTES) {
    this.#cap = cap;
  }

  /** Lines that end in these bytes. */
  *push(bytes: Uint8Array): Generator<Line> {
    let start = 0;
    while (start < bytes.length) {
      const end = bytes.indexOf(LINE_FEED, start);
      const complete = end >= 0;
      const part = bytes.subarray(start, complete ? end : bytes.length);
      start += part.length + (complete ? 1 : 0);
      const overflow = this.#collect(part);
      if (overflow) yield { kind: 'too_long' };
      if (complete) {
        if (this.#isSkipping) this.#isSkipping = false;
        else yield this.#take();
      }
    }
  }

  /** Adds bytes to the current line. Returns true once per line: when the line exceeds the cap. */
  #collect(part: Uint8Array): boolean {
    if (this.#isSkipping) return false;
    if (this.#length + part.length > this.#cap) {
      this.#parts = [];
      this.#length = 0;
      this.#isSkipping = true;
      return true;
    }
    // Copied, because the stream may reuse its buffer.
    if (part.length > 0) this.#parts.push(part.slice());
    this.#length += part.length;
    return false;
  }

  /** Returns the complete line, and begins the next line. */
  #take(): Line {
    const whole = this.#parts.length === 1 ? (this.#parts[0] as Uint8Array) : Buffer.concat(this.#parts);
    this.#parts = [];
    this.#length = 0;
    try {
      return { kind: 'line', text: this.#decoder.decode(whole) };
    } catch {
      return { kind: 'not_text' };
    }
  }
}
