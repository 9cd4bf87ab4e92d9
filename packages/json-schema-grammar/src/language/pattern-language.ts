/**
 * `languageOfPattern` converts a regular expression (ECMA-262) to a regular language. Patterns match anywhere unless anchored.
 *
 * Look-ahead is supported; look-behind and back references are not. Every pattern is read with the `u` flag; of the syntax that only
 * patterns without the flag have, identity escapes such as `\\-` are supported.
 */
import { inRanges } from '../grammar/grammar.js';
import { ANY_CHARACTER, type Language, type LanguageFactory, type Leaf, normalise } from './regular-language.js';

/** The pattern is not a valid regular expression, or has an unsupported construct. */
export class PatternError extends Error {
  /** `limit`: the maximum length or repetition count that the pattern exceeds, or null. */
  constructor(
    readonly code: 'invalid_request' | 'unsupported',
    readonly limit: number | null = null,
  ) {
    super(`the pattern is refused: ${code}`);
    this.name = 'PatternError';
  }
}

/** Marker before the first character of a text, as a pseudo code point. */
const BEGIN = -2;
/** Marker after the last character of a text, as a pseudo code point. */
const END = -1;
/** Maximum length of a pattern, in UTF-16 code units. */
const MAX_LENGTH = 1000;
/** Maximum bounds of a quantifier. */
const MAX_REPEATS = 1000;

/** Ranges of `\\d`. */
const DIGITS = [0x30, 0x39];
/** Ranges of `\\w`. */
const WORD = [0x30, 0x39, 0x41, 0x5a, 0x5f, 0x5f, 0x61, 0x7a];
/** Ranges of `\\s`. */
const SPACE = [
  9, 13, 0x20, 0x20, 0xa0, 0xa0, 0x1680, 0x1680, 0x2000, 0x200a, 0x2028, 0x2029, 0x202f, 0x202f, 0x205f, 0x205f, 0x3000, 0x3000, 0xfeff,
  0xfeff,
];
/** Ranges that `.` does not match. */
const LINE_BREAKS = [0x0a, 0x0a, 0x0d, 0x0d, 0x2028, 0x2029];
/** Code points of control escapes, by letter. */
const CONTROL_ESCAPES: Readonly<Record<string, number>> = { n: 10, r: 13, t: 9, v: 11, f: 12 };

/** Throws {@link PatternError} unless `RegExp` accepts the pattern. Call before a client's pattern becomes part of a longer one. */
export function checkPattern(pattern: string): void {
  if (pattern.length > MAX_LENGTH) throw new PatternError('unsupported', MAX_LENGTH);
  try {
    new RegExp(pattern, 'u');
  } catch {
    // Identity escapes such as \- are errors with the `u` flag, but allowed without.
    try {
      new RegExp(pattern);
    } catch {
      throw new PatternError('invalid_request');
    }
  }
}

/** The language of all texts that contain a match of the pattern. Throws {@link PatternError}. */
export function languageOfPattern(languages: LanguageFactory, pattern: string): Language {
  checkPattern(pattern);
  const reader = new PatternReader(languages, pattern);
  const character = languages.characterClass([BEGIN, END, ...ANY_CHARACTER]);
  const anything = languages.repeat(character, 0, Infinity);
  const found = languages.concatenation(anything, reader.read(anything));
  const [begin, end] = [languages.characterClass([BEGIN, BEGIN]), languages.characterClass([END, END])];
  const withMarkers = languages.intersection(found, languages.concatenation(begin, languages.anyText, end));
  return languages.leaf(new LeafWithoutEnd(languages, languages.derivative(withMarkers, BEGIN)));
}

/** Texts of a language without their END marker. */
class LeafWithoutEnd implements Leaf {
  readonly key: string;
  readonly nullable: boolean;

  constructor(
    private readonly languages: LanguageFactory,
    private readonly rest: Language,
  ) {
    this.key = `without end ${rest.id}`;
    this.nullable = languages.derivative(rest, END).nullable;
  }

  get cuts(): readonly number[] {
    return this.languages.cuts(this.rest);
  }

  step(code: number): LeafWithoutEnd | null {
    const next = this.languages.derivative(this.rest, code);
    return next.kind === 'nothing' ? null : new LeafWithoutEnd(this.languages, next);
  }
}

/** A parsed part of the pattern. Look-ahead needs the following language, so each part receives it as `then`. */
type Part = (then: Language) => Language;

class PatternReader {
  /** Index of the next character of the pattern. */
  #at = 0;
  /** Whether the part being read has a look-ahead. */
  #hasLookahead = false;

  constructor(
    private readonly languages: LanguageFactory,
    private readonly pattern: string,
  ) {}

  /** Language of the pattern's matches, each followed by a text of `then`. */
  read(then: Language): Language {
    const part = this.#parseAlternatives();
    if (this.#at < this.pattern.length) throw new PatternError('invalid_request');
    return part(then);
  }

  #parseAlternatives(): Part {
    const choices = [this.#parseSequence()];
    while (this.#take('|')) choices.push(this.#parseSequence());
    const [only] = choices;
    return choices.length === 1 && only !== undefined ? only : (then) => this.languages.union(...choices.map((choice) => choice(then)));
  }

  #parseSequence(): Part {
    const parts: Part[] = [];
    while (this.#at < this.pattern.length && !this.#isNext('|') && !this.#isNext(')')) parts.push(this.#parseTerm());
    return (then) => parts.reduceRight((rest, part) => part(rest), then);
  }

  /** Parses an atom with its quantifier. */
  #parseTerm(): Part {
    const hadLookahead = this.#hasLookahead;
    this.#hasLookahead = false;
    const part = this.#parseAtom();
    const bounds = this.#parseQuantifier();
    const looksAhead = this.#hasLookahead;
    this.#hasLookahead ||= hadLookahead;
    if (bounds === null) return part;
    // A look-ahead in a repetition would also see the following repetitions, which `part(empty)` cannot express.
    if (looksAhead) throw new PatternError('unsupported');
    const once = part(this.languages.empty);
    const repeated = this.languages.repeat(once, bounds[0], bounds[1]);
    return (then) => this.languages.concatenation(repeated, then);
  }

  /** Minimum and maximum of a quantifier; null without a quantifier. */
  #parseQuantifier(): [number, number] | null {
    let bounds: [number, number] | null = null;
    if (this.#take('*')) bounds = [0, Infinity];
    else if (this.#take('+')) bounds = [1, Infinity];
    else if (this.#take('?')) bounds = [0, 1];
    else {
      const [whole, min, comma, max] = /^\{(\d+)(,?)(\d*)\}/.exec(this.pattern.slice(this.#at)) ?? [];
      if (whole === undefined) return null;
      this.#at += whole.length;
      bounds = [Number(min), comma === '' ? Number(min) : max === '' ? Infinity : Number(max)];
      if (bounds[0] > MAX_REPEATS || (bounds[1] !== Infinity && bounds[1] > MAX_REPEATS))
        throw new PatternError('unsupported', MAX_REPEATS);
    }
    // Lazy quantifiers match the same texts as greedy quantifiers.
    this.#take('?');
    return bounds;
  }

  #parseAtom(): Part {
    const { languages } = this;
    if (this.#take('(')) return this.#parseGroup();
    if (this.#take('[')) return this.#character(this.#parseClass());
    if (this.#take('.')) return this.#character(complement(LINE_BREAKS));
    if (this.#take('^')) return (then) => languages.concatenation(languages.characterClass([BEGIN, BEGIN]), then);
    if (this.#take('$')) return (then) => languages.concatenation(languages.characterClass([END, END]), then);
    if (this.#take('\\')) return this.#character(this.#parseEscape(false));
    const code = this.#next();
    return this.#character([code, code]);
  }

  #character(ranges: readonly number[]): Part {
    const one = this.languages.characterClass(ranges);
    return (then) => this.languages.concatenation(one, then);
  }

  /** Parses a group or look-ahead after its opening parenthesis. */
  #parseGroup(): Part {
    const sign = this.#take('?=') ? '=' : this.#take('?!') ? '!' : null;
    if (sign === null) {
      if (this.#isNext('?<=') || this.#isNext('?<!')) throw new PatternError('unsupported');
      if (this.#take('?<')) this.#at = this.pattern.indexOf('>', this.#at) + 1;
      else if (this.#isNext('?') && !this.#take('?:')) throw new PatternError('unsupported');
    }
    const inner = this.#parseAlternatives();
    if (!this.#take(')')) throw new PatternError('invalid_request');
    if (sign === null) return inner;
    this.#hasLookahead = true;
    const { languages } = this;
    const ahead = inner(languages.repeat(languages.characterClass([BEGIN, END, ...ANY_CHARACTER]), 0, Infinity));
    return (then) => languages.intersection(sign === '!' ? languages.complement(ahead) : ahead, then);
  }

  /** Ranges of a class, parsed after its opening bracket. */
  #parseClass(): readonly number[] {
    const isNegative = this.#take('^');
    const ranges: number[] = [];
    while (!this.#take(']')) {
      if (this.#at >= this.pattern.length) throw new PatternError('invalid_request');
      const low = this.#parseClassAtom();
      const [from] = low;
      if (low.length === 2 && low[0] === low[1] && this.#isNext('-') && this.pattern[this.#at + 1] !== ']') {
        this.#take('-');
        const high = this.#parseClassAtom();
        if (high.length !== 2 || high[0] !== high[1]) throw new PatternError('unsupported');
        ranges.push(from as number, high[1] as number);
      } else ranges.push(...low);
    }
    return isNegative ? complement(ranges) : ranges;
  }

  #parseClassAtom(): readonly number[] {
    if (this.#take('\\')) return this.#parseEscape(true);
    const code = this.#next();
    return [code, code];
  }

  /** Ranges of an escape, parsed after its backslash. */
  #parseEscape(inClass: boolean): readonly number[] {
    const letter = String.fromCodePoint(this.#next());
    const control = CONTROL_ESCAPES[letter];
    if (control !== undefined) return [control, control];
    switch (letter) {
      case 'd':
        return DIGITS;
      case 'D':
        return complement(DIGITS);
      case 'w':
        return WORD;
      case 'W':
        return complement(WORD);
      case 's':
        return SPACE;
      case 'S':
        return complement(SPACE);
      case 'b':
        if (inClass) return [8, 8];
        throw new PatternError('unsupported');
      case 'x':
        return this.#parseCodePoint(/^([0-9a-f]{2})/i);
      case 'u':
        return this.#parseUnicodeEscape();
      case 'p':
      case 'P':
        return this.#parseProperty(letter === 'P');
      default:
        if (/[A-Za-z0-9]/.test(letter)) throw new PatternError('unsupported');
        return [letter.codePointAt(0) ?? 0, letter.codePointAt(0) ?? 0];
    }
  }

  #parseUnicodeEscape(): readonly number[] {
    if (this.#isNext('{')) return this.#parseCodePoint(/^\{([0-9a-f]+)\}/i);
    const [lead = 0] = this.#parseCodePoint(/^([0-9a-f]{4})/i);
    const [pair, trail] = /^\\u(d[c-f][0-9a-f]{2})/i.exec(this.pattern.slice(this.#at)) ?? [];
    if (lead < 0xd800 || lead > 0xdbff || pair === undefined || trail === undefined) return [lead, lead];
    this.#at += pair.length;
    const code = String.fromCharCode(lead, Number.parseInt(trail, 16)).codePointAt(0) ?? 0;
    return [code, code];
  }

  /** Range of a code point in hexadecimal. Rejects incomplete escapes, which match `x` or `u` without the `u` flag. */
  #parseCodePoint(digits: RegExp): readonly number[] {
    const [whole, hex] = digits.exec(this.pattern.slice(this.#at)) ?? [];
    const code = Number.parseInt(hex ?? '', 16);
    if (whole === undefined || !(code <= 0x10ffff)) throw new PatternError('unsupported');
    this.#at += whole.length;
    return [code, code];
  }

  #parseProperty(isNegative: boolean): readonly number[] {
    const [whole, name] = /^\{([A-Za-z_=]{1,64})\}/.exec(this.pattern.slice(this.#at)) ?? [];
    if (whole === undefined || name === undefined) throw new PatternError('unsupported');
    this.#at += whole.length;
    const ranges = charactersWith(name);
    return isNegative ? complement(ranges) : ranges;
  }

  /** Consumes the next character, and returns its code point. */
  #next(): number {
    const code = this.pattern.codePointAt(this.#at);
    if (code === undefined) throw new PatternError('invalid_request');
    this.#at += code > 0xffff ? 2 : 1;
    return code;
  }

  #isNext(text: string): boolean {
    return this.pattern.startsWith(text, this.#at);
  }

  /** Consumes the text if it is next in the pattern. */
  #take(text: string): boolean {
    if (!this.#isNext(text)) return false;
    this.#at += text.length;
    return true;
  }
}

/** All code points outside the ranges, without NUL and surrogates. */
function complement(ranges: readonly number[]): readonly number[] {
  const sorted = normalise(ranges);
  const others: number[] = [];
  let from = 1;
  for (let i = 0; i + 1 < sorted.length; i += 2) {
    others.push(from, (sorted[i] as number) - 1);
    from = (sorted[i + 1] as number) + 1;
  }
  others.push(from, 0x10ffff);
  return withoutSurrogates(normalise(others));
}

/** The ranges without the code points of surrogates. */
function withoutSurrogates(ranges: readonly number[]): readonly number[] {
  const kept: number[] = [];
  for (let i = 0; i + 1 < ranges.length; i += 2) {
    const [low, high] = [ranges[i] as number, ranges[i + 1] as number];
    if (high < 0xd800 || low > 0xdfff) kept.push(low, high);
    else kept.push(low, 0xd7ff, 0xe000, high);
  }
  return normalise(kept);
}

/** Code points with a Unicode property. Tests all code points, which takes some hundredths of a second. */
function charactersWith(property: string): readonly number[] {
  let test: RegExp;
  try {
    test = new RegExp(`^\\p{${property}}$`, 'u');
  } catch {
    throw new PatternError('invalid_request');
  }
  const ranges: number[] = [];
  for (let code = 1; code <= 0x10ffff; code++) {
    if (inRanges([0xd800, 0xdfff], code) || !test.test(String.fromCodePoint(code))) continue;
    if (ranges.at(-1) === code - 1) ranges[ranges.length - 1] = code;
    else ranges.push(code, code);
  }
  return ranges;
}
