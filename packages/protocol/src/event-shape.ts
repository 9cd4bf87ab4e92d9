/**
 * The shape of a stream's event: its bytes, in which marks replace numbers and the contents of strings.
 *
 * Nearly all events of an answer have one shape, so that comparing with the shape of a checked event saves checking each event.
 */
import { ESCAPES, endsWithLineBreak, IS_PLAIN } from './json-object-check.js';

/** Marks in a shape. No event contains these bytes. */
const STRING_MARK = 0x00;
const NUMBER_MARK = 0x01;

const QUOTE = 0x22;
const DIGIT_0 = 0x30;
const DIGIT_9 = 0x39;
const BACKSLASH = 0x5c;
const LOWER_U = 0x75;
const FIRST_NON_ASCII = 0x80;
/** Long events do not repeat. */
const MAX_LENGTH = 1024;
/** Strings and numbers in JSON. */
const TOKENS = /"(?:[^"\\]|\\.)*"|[0-9]+/g;

/**
 * The shape of a whole event that was checked. Null for events that need a check of their own.
 *
 * @param dataStart Index of the first byte of the JSON text.
 */
export function shapeOf(event: Uint8Array, dataStart: number): Uint8Array | null {
  if (event.length > MAX_LENGTH) return null;
  const data = String.fromCharCode(...event.subarray(dataStart, -2));
  // Names and types are recognized by the bytes beside them.
  if (data.replace(TOKENS, '').includes(' ')) return null;
  const shape = data.replace(TOKENS, (token, at: number) => {
    if (token.charCodeAt(0) !== QUOTE) return String.fromCharCode(NUMBER_MARK);
    const isName = data.charAt(at + token.length) === ':';
    return isName || data.endsWith('"type":', at) ? token : `"${String.fromCharCode(STRING_MARK)}"`;
  });
  // Usage is read from each event. Escapes are left only in names.
  if (shape.includes('\\') || shape.replaceAll('"usage":null', '').includes('"usage"')) return null;
  const text = `${String.fromCharCode(...event.subarray(0, dataStart))}${shape}\n\n`;
  return Uint8Array.from(text, (character) => character.charCodeAt(0));
}

/** The index after an event of this shape that begins at `start`; -1 if none does. Some events of the shape are not recognized. */
export function endOfShape(shape: Uint8Array, bytes: Uint8Array, start: number): number {
  const { length } = shape;
  let at = start;
  for (let index = 0; index < length; index++) {
    const expected = shape[index] as number;
    if (expected > NUMBER_MARK) {
      if (bytes[at] !== expected) return -1;
      at++;
    } else {
      at = expected === STRING_MARK ? endOfString(bytes, at) : endOfNumber(bytes, at);
      if (at === -1) return -1;
    }
  }
  return at;
}

/** The index of the closing quote; -1 if there is none, or for `\u` and characters that may end a line. */
function endOfString(bytes: Uint8Array, start: number): number {
  for (let at = start; at < bytes.length; at++) {
    while (IS_PLAIN[bytes[at] as number] === 1) at++;
    const byte = bytes[at] as number;
    if (byte === QUOTE) return at;
    if (byte === BACKSLASH) {
      at++;
      if (bytes[at] === LOWER_U || !ESCAPES.has(bytes[at])) return -1;
    } else if (!(byte >= FIRST_NON_ASCII) || isLineBreakAt(bytes, at)) return -1;
  }
  return -1;
}

function isLineBreakAt(bytes: Uint8Array, at: number): boolean {
  const [first = 0, second = 0, third = 0] = [bytes[at], bytes[at + 1], bytes[at + 2]];
  return endsWithLineBreak((first << 8) | second) || endsWithLineBreak((first << 16) | (second << 8) | third);
}

/** The index after a number without leading zeros; -1 if there is none. */
function endOfNumber(bytes: Uint8Array, start: number): number {
  let at = start;
  while ((bytes[at] as number) >= DIGIT_0 && (bytes[at] as number) <= DIGIT_9) at++;
  return at === start || (bytes[start] === DIGIT_0 && at > start + 1) ? -1 : at;
}
