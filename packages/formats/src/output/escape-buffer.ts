/**
 * `EscapeBuffer` withholds an incomplete escape of JSON text. Escapes of NUL and of lone surrogates become `\ufffd`, because
 * `readJsonBody` rejects both in a request that sends the arguments back.
 */
const ESCAPE = /\\(?:ud[89ab][\da-f]{2}\\ud[c-f][\da-f]{2}|u[\da-f]{4}|[\s\S])/gi;
const REPLACED = /^\\u(?:0000|d[89a-f][\da-f]{2})$/i;
/** A first half may continue with a second. */
const INCOMPLETE = /^(?:\\ud[89ab][\da-f]{2})?(?:\\(?:u[\da-f]{0,3})?)?$/i;
const REPLACEMENT = '\\ufffd';
const ESCAPE_LENGTH = 6;

export class EscapeBuffer {
  /** Starts with a backslash, or is empty. */
  #held = '';

  /** Reads one UTF-16 unit. */
  push(unit: string): string {
    if (this.#held === '' && unit !== '\\') return unit;
    const text = this.#held + unit;
    const second = text.slice(ESCAPE_LENGTH);
    // After a lone first half, another may start a pair.
    const keepsSecond = second !== '' && INCOMPLETE.test(second) && !INCOMPLETE.test(text);
    this.#held = INCOMPLETE.test(text) ? text : keepsSecond ? second : '';
    return repairEscapes(text.slice(0, text.length - this.#held.length));
  }

  /** Rest of a truncated text, unchanged. */
  end(): string {
    const rest = this.#held;
    this.#held = '';
    return rest;
  }
}

export function repairEscapes(json: string): string {
  return json.includes('\\') ? json.replace(ESCAPE, (each) => (REPLACED.test(each) ? REPLACEMENT : each)) : json;
}
