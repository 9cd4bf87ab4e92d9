/**
 * `JsonObjectCheck` checks in bounded memory that bytes are one JSON object (RFC 8259) without white space, and hold no error.
 *
 * Clients act on few members of an answer: `error`, whose text they show, and `type` or `object`, by which they choose what to do.
 */
import { utf8 } from './bytes.js';

/** A member of the object, at most {@link MAX_NAME_LENGTH} characters long, with its only allowed value. Null: must be absent. */
export interface RequiredMember {
  readonly name: string;
  readonly value: string | null;
}

/** Answers repeat schemas of their request, whose nesting the coordinator limits to 64. */
const MAX_DEPTH = 128;
/** Longest name that matters: `response`. */
const MAX_NAME_LENGTH = 8;
const CONTAINER = 'response';

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
const ESCAPES: ReadonlySet<number> = new Set(utf8('"\\/bfnrtu'));
const HEX_DIGITS: ReadonlySet<number> = new Set(utf8('0123456789abcdefABCDEF'));
const LITERALS = ['true', 'false', 'null'].map(utf8);

/** Position in the JSON text. Numbers, because bytes are dispatched by them. */
const START = 0;
const FIRST_NAME = 1;
const NAME = 2;
const BEFORE_COLON = 3;
const FIRST_ELEMENT = 4;
const VALUE = 5;
const AFTER_VALUE = 6;
const IN_NAME = 7;
const IN_STRING = 8;
const IN_REQUIRED = 9;
const LITERAL = 10;
const AFTER_MINUS = 11;
const AFTER_ZERO = 12;
const INTEGER = 13;
const AFTER_POINT = 14;
const FRACTION = 15;
const AFTER_E = 16;
const AFTER_SIGN = 17;
const EXPONENT = 18;
const DONE = 19;

export class JsonObjectCheck {
  /** Whether the text is the data of an event, which has no characters that end a line for some readers. */
  readonly #isEventData: boolean;
  #position = START;
  #required: RequiredMember | null = null;
  /** The required value with its closing quote. */
  #requiredBytes: Uint8Array | null = null;
  #hasRequired = false;
  #depth = 0;
  /** By depth: 1 for an object, 0 for an array. */
  readonly #isObject = new Uint8Array(MAX_DEPTH + 1);
  /** Whether the value at depth 2 is the object `response` of an event, whose names matter like those of the root. */
  #isInContainer = false;
  #name = '';
  /** Position in an escape of a string: 0 outside, 1 after the backslash, then 2 to 5 at hexadecimal digits. */
  #escape = 0;
  /** Up to three bytes before the current one, if they are not ASCII; else 0. */
  #lastBytes = 0;
  /** Literal or required value, and its matched bytes. */
  #expected: Uint8Array = LITERALS[0] as Uint8Array;
  #matched = 0;

  constructor({ isEventData }: { readonly isEventData: boolean }) {
    this.#isEventData = isEventData;
  }

  /** Begins a text. */
  begin(required: RequiredMember | null): void {
    this.#position = START;
    this.#required = required;
    this.#requiredBytes = typeof required?.value === 'string' ? utf8(`${required.value}"`) : null;
    this.#hasRequired = false;
    this.#depth = 0;
    this.#isInContainer = false;
    this.#escape = 0;
  }

  /** Whether the object is complete. */
  get isDone(): boolean {
    return this.#position === DONE;
  }

  /** Takes bytes from `start` to the end of the object. Returns the index after them; -1 at the first byte that is not allowed. */
  take(bytes: Uint8Array, start: number): number {
    const { length } = bytes;
    for (let at = start; at < length; at++) {
      if (this.#position === IN_STRING && this.#escape === 0 && this.#lastBytes === 0) {
        // Strings make up most of an answer, so this loop skips their bytes quickly.
        let byte = bytes[at] as number;
        while (byte >= SPACE && byte < FIRST_NON_ASCII && byte !== QUOTE && byte !== BACKSLASH && ++at < length) byte = bytes[at] as number;
        if (at === length) return length;
      }
      if (!this.#takeByte(bytes[at] as number)) return -1;
      if (this.#position === DONE) return at + 1;
    }
    return length;
  }

  #takeByte(byte: number): boolean {
    switch (this.#position) {
      case IN_STRING:
        if (byte === QUOTE && this.#escape === 0) return this.#valueEnds();
        return this.#inString(byte);
      case IN_NAME:
        if (byte === QUOTE && this.#escape === 0) {
          this.#position = BEFORE_COLON;
          this.#lastBytes = 0;
          return true;
        }
        if (this.#areNamesRead) {
          // An escape would hide a name from readers that do not parse the text.
          if (byte === BACKSLASH) return false;
          if (this.#name.length <= MAX_NAME_LENGTH) this.#name += String.fromCharCode(byte);
        }
        return this.#inString(byte);
      case IN_REQUIRED:
      case LITERAL:
        if (byte !== this.#expected[this.#matched]) return false;
        this.#matched++;
        return this.#matched < this.#expected.length || this.#valueEnds();
      default:
        return this.#structure(byte);
    }
  }

  #structure(byte: number): boolean {
    switch (this.#position) {
      case START:
        return byte === OPEN_BRACE && this.#open(true);
      case FIRST_NAME:
        if (byte === CLOSE_BRACE) return this.#close(true);
        return byte === QUOTE && this.#beginName();
      case NAME:
        return byte === QUOTE && this.#beginName();
      case BEFORE_COLON:
        this.#position = VALUE;
        return byte === COLON;
      case FIRST_ELEMENT:
        return byte === CLOSE_BRACKET ? this.#close(false) : this.#value(byte);
      case VALUE:
        return this.#value(byte);
      case AFTER_VALUE:
        if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) return this.#close(byte === CLOSE_BRACE);
        this.#position = this.#isObject[this.#depth] === 1 ? NAME : VALUE;
        return byte === COMMA;
      default:
        return this.#number(byte);
    }
  }

  #number(byte: number): boolean {
    const isDigit = byte >= DIGIT_0 && byte <= DIGIT_9;
    const position = this.#position;
    if (isDigit && position === AFTER_MINUS) this.#position = byte === DIGIT_0 ? AFTER_ZERO : INTEGER;
    else if (isDigit && position === AFTER_POINT) this.#position = FRACTION;
    else if (isDigit && (position === AFTER_E || position === AFTER_SIGN)) this.#position = EXPONENT;
    else if (isDigit) return position === INTEGER || position === FRACTION || position === EXPONENT;
    else if (byte === POINT && (position === AFTER_ZERO || position === INTEGER)) this.#position = AFTER_POINT;
    else if ((byte === LOWER_E || byte === UPPER_E) && (position === AFTER_ZERO || position === INTEGER || position === FRACTION)) {
      this.#position = AFTER_E;
    } else if ((byte === PLUS || byte === MINUS) && position === AFTER_E) this.#position = AFTER_SIGN;
    else return this.#numberEnds() && this.#structure(byte);
    return true;
  }

  #numberEnds(): boolean {
    const position = this.#position;
    this.#position = AFTER_VALUE;
    return position === AFTER_ZERO || position === INTEGER || position === FRACTION || position === EXPONENT;
  }

  #value(byte: number): boolean {
    if (this.#areNamesRead) {
      if (this.#name === 'error' && byte !== LOWER_N) return false;
      if (this.#depth === 1 && this.#name === this.#required?.name) return byte === QUOTE && this.#beginRequired();
    }
    switch (byte) {
      case QUOTE:
        this.#position = IN_STRING;
        return true;
      case OPEN_BRACE:
      case OPEN_BRACKET:
        return this.#open(byte === OPEN_BRACE);
      case MINUS:
        this.#position = AFTER_MINUS;
        return true;
      default: {
        if (byte >= DIGIT_0 && byte <= DIGIT_9) {
          this.#position = byte === DIGIT_0 ? AFTER_ZERO : INTEGER;
          return true;
        }
        const literal = LITERALS.find(([first]) => first === byte);
        if (literal !== undefined) this.#expect(literal, 1, LITERAL);
        return literal !== undefined;
      }
    }
  }

  #beginName(): true {
    this.#position = IN_NAME;
    this.#name = '';
    return true;
  }

  /** False if the member may not be present, or is there twice: readers differ in the one that they use. */
  #beginRequired(): boolean {
    if (this.#requiredBytes === null || this.#hasRequired) return false;
    this.#hasRequired = true;
    this.#expect(this.#requiredBytes, 0, IN_REQUIRED);
    return true;
  }

  #expect(bytes: Uint8Array, matched: number, position: number): void {
    this.#expected = bytes;
    this.#matched = matched;
    this.#position = position;
  }

  #valueEnds(): true {
    this.#position = AFTER_VALUE;
    this.#lastBytes = 0;
    return true;
  }

  /** Whether the names of the innermost object matter. */
  get #areNamesRead(): boolean {
    return this.#depth === 1 || (this.#depth === 2 && this.#isInContainer);
  }

  #open(isObject: boolean): boolean {
    if (this.#depth === MAX_DEPTH) return false;
    if (this.#depth === 1) this.#isInContainer = isObject && this.#name === CONTAINER;
    this.#depth++;
    this.#isObject[this.#depth] = isObject ? 1 : 0;
    this.#position = isObject ? FIRST_NAME : FIRST_ELEMENT;
    return true;
  }

  #close(isObject: boolean): boolean {
    if ((this.#isObject[this.#depth] === 1) !== isObject) return false;
    this.#depth--;
    this.#position = this.#depth === 0 ? DONE : AFTER_VALUE;
    return this.#depth > 0 || this.#hasRequired || this.#requiredBytes === null;
  }

  /** A byte of a name or a string, other than its end. */
  #inString(byte: number): boolean {
    if (this.#escape > 0) {
      const isFirst = this.#escape === 1;
      this.#escape = isFirst && byte !== LOWER_U ? 0 : (this.#escape + 1) % 6;
      return (isFirst ? ESCAPES : HEX_DIGITS).has(byte);
    }
    if (byte < SPACE) return false;
    if (byte === BACKSLASH) this.#escape = 1;
    this.#lastBytes = byte < FIRST_NON_ASCII ? 0 : ((this.#lastBytes << 8) | byte) & 0xffffff;
    return !this.#isEventData || this.#lastBytes === 0 || !endsWithLineBreak(this.#lastBytes);
  }
}

/** Whether up to three bytes end with the UTF-8 of U+0085, U+2028 or U+2029, which end a line for some readers (Python's `str.splitlines`). */
export function endsWithLineBreak(bytes: number): boolean {
  return (bytes & 0xffff) === 0xc285 || bytes === 0xe280a8 || bytes === 0xe280a9;
}

/** Checks the JSON body of an unstreamed answer, in pieces split anywhere. */
export class BodyCheck {
  readonly #object = new JsonObjectCheck({ isEventData: false });

  /** @param required Member by which clients recognize the answer; null: none. */
  constructor(required: RequiredMember | null) {
    this.#object.begin(required);
  }

  /** Returns false at the first byte that no provider writes; then the check is over. */
  accepts(bytes: Uint8Array): boolean {
    const end = this.#object.isDone ? 0 : this.#object.take(bytes, 0);
    return end === bytes.length;
  }

  get isComplete(): boolean {
    return this.#object.isDone;
  }
}
