/**
 * `JsonObjectCheck` checks in bounded memory that bytes are one JSON object (RFC 8259) that holds no error.
 *
 * Clients act on few members of an answer: `error`, whose text they show, and `type` or `object`, by which they choose what to do.
 */
import { utf8 } from './bytes.js';

/** A member of an object, with a name of at most {@link MAX_NAME_LENGTH} characters, and its only allowed value. */
export interface RequiredMember {
  readonly name: string;
  readonly value: string;
}

/** Far above what a model writes into the arguments of a tool call, which an answer may contain as JSON. */
const MAX_DEPTH = 2 ** 20;
/** Initial capacity of the stack, in levels. */
const INITIAL_DEPTH = 128;
/** Longest name that matters: `response`. */
const MAX_NAME_LENGTH = 8;
const ERROR = 'error';
/** Member of an event whose names matter like those of the event. */
const CONTAINER = 'response';

const TAB = 0x09;
const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;
const QUOTE = 0x22;
const PLUS = 0x2b;
const COMMA = 0x2c;
const MINUS = 0x2d;
const POINT = 0x2e;
const DIGIT_0 = 0x30;
const DIGIT_9 = 0x39;
const COLON = 0x3a;
const UPPER_E = 0x45;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const LOWER_E = 0x65;
const LOWER_N = 0x6e;
const LOWER_U = 0x75;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const FIRST_NON_ASCII = 0x80;
const LOWER_CASE_BIT = 0x20;
/** Bytes that may follow a backslash. */
export const ESCAPES: ReadonlySet<number | undefined> = new Set(utf8('"\\/bfnrtu'));
const HEX_DIGITS: ReadonlySet<number> = new Set(utf8('0123456789abcdefABCDEF'));
const LITERALS = ['true', 'false', 'null'] as const;
/** By byte: 1 for characters of ASCII that stand for themselves in a string. */
export const IS_PLAIN = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte >= SPACE && byte < FIRST_NON_ASCII && byte !== QUOTE && byte !== BACKSLASH ? 1 : 0,
);

/** Position in the JSON text. Numbers, because bytes are dispatched by them. White space may stand at positions up to `AFTER_VALUE`. */
const START = 0;
const FIRST_NAME = 1;
const NAME = 2;
const BEFORE_COLON = 3;
const FIRST_ELEMENT = 4;
const VALUE = 5;
const AFTER_VALUE = 6;
const IN_NAME = 7;
const IN_STRING = 8;
/** Within a literal, or the required value. */
const IN_EXPECTED = 9;
const AFTER_MINUS = 10;
const AFTER_ZERO = 11;
const INTEGER = 12;
const AFTER_POINT = 13;
const FRACTION = 14;
const AFTER_E = 15;
const AFTER_SIGN = 16;
const EXPONENT = 17;
const DONE = 18;

export class JsonObjectCheck {
  /**
   * Whether the text is the data of an event: begins with the object, and has neither characters that end a line for some readers nor
   * white space but spaces.
   */
  readonly #isEventData: boolean;
  #position = START;
  readonly #requiredName: string | null;
  /** The required value with its closing quote; null: the member must be absent. */
  #requiredValue: string | null = null;
  #hasRequired = false;
  #depth = 0;
  /** By depth: 1 for an object, 0 for an array. Grows to at most twice {@link MAX_DEPTH} bytes. */
  #isObject = new Uint8Array(INITIAL_DEPTH);
  /** Whether the value at depth 2 is the object `response`. */
  #isInContainer = false;
  /** First bytes of the newest name that matters. */
  readonly #name: number[] = [];
  #nameLength = 0;
  /** Position in an escape of a string: 0 outside, 1 after the backslash, then 2 to 5 at hexadecimal digits. */
  #escape = 0;
  /** Up to three bytes before the current one, if they are not ASCII; else 0. */
  #lastBytes = 0;
  /** Literal or required value, and its matched bytes. */
  #expected = '';
  #matched = 0;

  /** @param requiredName Name of the member whose value `begin` requires; null: none. */
  constructor(requiredName: string | null, { isEventData }: { readonly isEventData: boolean }) {
    this.#requiredName = requiredName;
    this.#isEventData = isEventData;
  }

  /** Begins a text. The required value is ASCII that stands for itself in JSON; null: the required member must be absent. */
  begin(requiredValue: string | null): void {
    this.#position = START;
    this.#requiredValue = requiredValue === null ? null : `${requiredValue}"`;
    this.#hasRequired = false;
    this.#depth = 0;
    this.#isInContainer = false;
    this.#escape = 0;
    this.#lastBytes = 0;
  }

  /** Whether the object is complete. */
  get isDone(): boolean {
    return this.#position === DONE;
  }

  /** Takes bytes from `start` to the end of the object. Returns the index after them; -1 at the first byte that is not allowed. */
  take(bytes: Uint8Array, start: number): number {
    const { length } = bytes;
    for (let at = start; at < length; at++) {
      let byte = bytes[at] as number;
      // Strings and digits make up most of an answer, so their bytes are skipped quickly.
      if (this.#position === IN_STRING && this.#escape === 0 && this.#lastBytes === 0) {
        while (IS_PLAIN[byte] === 1 && ++at < length) byte = bytes[at] as number;
        if (at === length) return length;
      } else if (this.#position === IN_NAME && this.#escape === 0 && this.#lastBytes === 0) {
        at = this.#takeName(bytes, at);
        if (at === length) return length;
        byte = bytes[at] as number;
      } else if (this.#position === INTEGER || this.#position === FRACTION) {
        while (byte >= DIGIT_0 && byte <= DIGIT_9 && ++at < length) byte = bytes[at] as number;
        if (at === length) return length;
      }
      if (!this.#takeByte(byte)) return -1;
      if (this.#position === DONE) return at + 1;
    }
    return length;
  }

  #takeByte(byte: number): boolean {
    if (byte <= SPACE && this.#position <= AFTER_VALUE && this.#isSpace(byte)) return true;
    switch (this.#position) {
      case IN_STRING:
        if (byte !== QUOTE || this.#escape !== 0) return this.#isInString(byte);
        this.#position = AFTER_VALUE;
        this.#lastBytes = 0;
        return true;
      case IN_NAME:
        if (byte !== QUOTE || this.#escape !== 0) {
          this.#nameLength = MAX_NAME_LENGTH + 1;
          // An escape would hide a name from readers that do not parse the text; invalid UTF-8, from readers that drop such bytes.
          return !((byte === BACKSLASH || byte >= FIRST_NON_ASCII) && this.#areNamesRead) && this.#isInString(byte);
        }
        this.#position = BEFORE_COLON;
        this.#lastBytes = 0;
        return true;
      case BEFORE_COLON:
        this.#position = VALUE;
        return byte === COLON;
      case VALUE:
        return this.#beginsValue(byte);
      case AFTER_VALUE:
        if (byte === COMMA) {
          this.#position = this.#isObject[this.#depth] === 1 ? NAME : VALUE;
          return true;
        }
        return (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) && this.#closes(byte === CLOSE_BRACE);
      case NAME:
        return byte === QUOTE && this.#beginName();
      case FIRST_NAME:
        return byte === QUOTE ? this.#beginName() : byte === CLOSE_BRACE && this.#closes(true);
      case FIRST_ELEMENT:
        return byte === CLOSE_BRACKET ? this.#closes(false) : this.#beginsValue(byte);
      case IN_EXPECTED:
        if (byte !== this.#expected.charCodeAt(this.#matched)) return false;
        this.#matched++;
        if (this.#matched === this.#expected.length) this.#position = AFTER_VALUE;
        return true;
      case START:
        return byte === OPEN_BRACE && this.#opens(true);
      default:
        return this.#isInNumber(byte);
    }
  }

  #isSpace(byte: number): boolean {
    return this.#isEventData ? byte === SPACE && this.#position !== START : isJsonSpace(byte);
  }

  #isInNumber(byte: number): boolean {
    const isDigit = byte >= DIGIT_0 && byte <= DIGIT_9;
    const isExponent = byte === LOWER_E || byte === UPPER_E;
    switch (this.#position) {
      case AFTER_MINUS:
        this.#position = byte === DIGIT_0 ? AFTER_ZERO : INTEGER;
        return isDigit;
      case AFTER_POINT:
        this.#position = FRACTION;
        return isDigit;
      case AFTER_E:
        this.#position = isDigit ? EXPONENT : AFTER_SIGN;
        return isDigit || byte === PLUS || byte === MINUS;
      case AFTER_SIGN:
        this.#position = EXPONENT;
        return isDigit;
      case EXPONENT:
        return isDigit || this.#isAfterNumber(byte);
      case FRACTION:
        if (!isExponent) return isDigit || this.#isAfterNumber(byte);
        this.#position = AFTER_E;
        return true;
      case AFTER_ZERO:
      case INTEGER:
        if (byte !== POINT && !isExponent) return (isDigit && this.#position === INTEGER) || this.#isAfterNumber(byte);
        this.#position = byte === POINT ? AFTER_POINT : AFTER_E;
        return true;
      default:
        return false;
    }
  }

  #isAfterNumber(byte: number): boolean {
    this.#position = AFTER_VALUE;
    return this.#takeByte(byte);
  }

  #beginsValue(byte: number): boolean {
    if (this.#areNamesRead) {
      if (byte !== LOWER_N && this.#resemblesName(ERROR)) return false;
      if (this.#depth === 1 && this.#requiredName !== null && this.#resemblesName(this.#requiredName))
        return byte === QUOTE && this.#hasName(this.#requiredName) && this.#beginsRequired();
    }
    switch (byte) {
      case QUOTE:
        this.#position = IN_STRING;
        return true;
      case OPEN_BRACE:
      case OPEN_BRACKET:
        return this.#opens(byte === OPEN_BRACE);
      case MINUS:
        this.#position = AFTER_MINUS;
        return true;
      case DIGIT_0:
        this.#position = AFTER_ZERO;
        return true;
      default: {
        this.#position = INTEGER;
        return (byte > DIGIT_0 && byte <= DIGIT_9) || this.#beginsLiteral(byte);
      }
    }
  }

  #beginsLiteral(byte: number): boolean {
    const literal = LITERALS.find((text) => text.charCodeAt(0) === byte);
    if (literal !== undefined) this.#expect(literal, 1);
    return literal !== undefined;
  }

  /** False if the member must be absent, or was there before: readers differ in the one that they use. */
  #beginsRequired(): boolean {
    if (this.#requiredValue === null || this.#hasRequired) return false;
    this.#hasRequired = true;
    this.#expect(this.#requiredValue, 0);
    return true;
  }

  #expect(text: string, matched: number): void {
    this.#expected = text;
    this.#matched = matched;
    this.#position = IN_EXPECTED;
  }

  #opens(isObject: boolean): boolean {
    if (this.#depth === MAX_DEPTH) return false;
    if (this.#depth === 1) this.#isInContainer = isObject && this.#resemblesName(CONTAINER);
    this.#depth++;
    if (this.#depth === this.#isObject.length) this.#growStack();
    this.#isObject[this.#depth] = isObject ? 1 : 0;
    this.#position = isObject ? FIRST_NAME : FIRST_ELEMENT;
    return true;
  }

  #growStack(): void {
    const larger = new Uint8Array(2 * this.#isObject.length);
    larger.set(this.#isObject);
    this.#isObject = larger;
  }

  #closes(isObject: boolean): boolean {
    if ((this.#isObject[this.#depth] === 1) !== isObject) return false;
    this.#depth--;
    this.#position = this.#depth === 0 ? DONE : AFTER_VALUE;
    return this.#depth > 0 || this.#hasRequired || this.#requiredValue === null;
  }

  /** Whether the names of the innermost object matter. */
  get #areNamesRead(): boolean {
    return this.#depth === 1 || (this.#depth === 2 && this.#isInContainer);
  }

  #beginName(): true {
    this.#position = IN_NAME;
    this.#nameLength = 0;
    return true;
  }

  #hasName(name: string): boolean {
    if (this.#nameLength !== name.length) return false;
    for (let at = 0; at < name.length; at++) if (this.#name[at] !== name.charCodeAt(at)) return false;
    return true;
  }

  /** Whether the newest name, in lower case, is `name` (ASCII letters only). Go's `encoding/json` ignores the case of names. */
  #resemblesName(name: string): boolean {
    if (this.#nameLength !== name.length) return false;
    for (let at = 0; at < name.length; at++) if (((this.#name[at] as number) | LOWER_CASE_BIT) !== name.charCodeAt(at)) return false;
    return true;
  }

  /** Takes characters of a name that stand for themselves. Returns the index after them. */
  #takeName(bytes: Uint8Array, start: number): number {
    let at = start;
    while (IS_PLAIN[bytes[at] as number] === 1) {
      if (this.#nameLength <= MAX_NAME_LENGTH) {
        this.#name[this.#nameLength] = bytes[at] as number;
        this.#nameLength++;
      }
      at++;
    }
    return at;
  }

  /** Whether a name or a string may go on with a byte. */
  #isInString(byte: number): boolean {
    if (this.#escape > 0) {
      const isFirst = this.#escape === 1;
      this.#escape = isFirst && byte !== LOWER_U ? 0 : (this.#escape + 1) % 6;
      return isFirst ? ESCAPES.has(byte) : HEX_DIGITS.has(byte);
    }
    if (byte < SPACE) return false;
    if (byte === BACKSLASH) this.#escape = 1;
    this.#lastBytes = byte < FIRST_NON_ASCII ? 0 : ((this.#lastBytes << 8) | byte) & 0xffffff;
    return !this.#isEventData || this.#lastBytes === 0 || !endsWithLineBreak(this.#lastBytes);
  }
}

/** Whether up to three bytes end with the UTF-8 of U+0085, U+2028 or U+2029, which end a line in Python's `str.splitlines`. */
export function endsWithLineBreak(bytes: number): boolean {
  return (bytes & 0xffff) === 0xc285 || bytes === 0xe280a8 || bytes === 0xe280a9;
}

/** White space of JSON (RFC 8259, section 2). */
function isJsonSpace(byte: number): boolean {
  return byte === SPACE || byte === LF || byte === CR || byte === TAB;
}

/** Checks the JSON body of an unstreamed answer, in pieces split anywhere. */
export class BodyCheck {
  readonly #object: JsonObjectCheck;

  /** @param required Member by which clients recognize the answer; null: none. */
  constructor(required: RequiredMember | null) {
    this.#object = new JsonObjectCheck(required?.name ?? null, { isEventData: false });
    this.#object.begin(required?.value ?? null);
  }

  /** Returns false at the first byte that no provider writes; then the check is over. */
  accepts(bytes: Uint8Array): boolean {
    const end = this.#object.isDone ? 0 : this.#object.take(bytes, 0);
    return end !== -1 && bytes.subarray(end).every(isJsonSpace);
  }

  get isComplete(): boolean {
    return this.#object.isDone;
  }
}
