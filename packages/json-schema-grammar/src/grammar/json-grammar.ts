/** `JsonGrammar` builds grammar rules for JSON that depend on no schema: white space, strings, members, arbitrary values. */

import { ANY_NUMBER, languageOfNumber } from '../language/number-language.js';
import { ANY_CHARACTER, type Language, type LanguageFactory, type State } from '../language/regular-language.js';
import type { GrammarBuilder, Sequence, Term } from './grammar.js';

/** Maximum indentation. Prevents a degenerate model from generating white space forever. */
const MAX_INDENT = 20;
/** Maximum nesting of values without a schema. Some clients' JSON parsers fail at a nesting of a thousand. */
const MAX_FREE_DEPTH = 16;
/** Characters allowed unescaped in a JSON string. */
const PLAIN = [0x20, 0x21, 0x23, 0x5b, 0x5d, 0xd7ff, 0xe000, 0x10ffff];
/** Hexadecimal digits. */
const HEX = [0x30, 0x39, 0x41, 0x46, 0x61, 0x66];
/** Hexadecimal digits except 0. */
const HEX_NOT_ZERO = [0x31, 0x39, 0x41, 0x46, 0x61, 0x66];

export class JsonGrammar {
  /** White space after `{`, `[` and `,`, and before `}` and `]`: none, a space, or a line break with indentation. */
  readonly whitespace: Term;
  /** White space after `:`: none or a space. */
  readonly space: Term;
  /** A code point in a string, plain or escaped. */
  readonly character: Term;
  /** Any string, with its quotes. */
  readonly string: Term;
  /** Rules of any value, by maximum nesting. */
  readonly #anyValue: Term[] = [];

  constructor(
    readonly builder: GrammarBuilder,
    readonly languages: LanguageFactory,
  ) {
    this.whitespace = this.#whitespace();
    this.space = builder.rule([], builder.text(' '));
    this.character = this.#character();
    const rest = builder.reserve();
    builder.define(rest, [builder.text('"'), [this.character, rest]]);
    this.string = builder.rule([...builder.text('"'), rest]);
  }

  /** Any value with at most `depth` levels of arrays and objects. */
  value(depth = MAX_FREE_DEPTH): Term {
    const known = this.#anyValue[depth];
    if (known !== undefined) return known;
    const { builder } = this;
    const words = ['true', 'false', 'null'].map((word) => builder.text(word));
    const value =
      depth === 0
        ? builder.rule([this.string], [this.unquoted(languageOfNumber(this.languages, ANY_NUMBER))], ...words)
        : builder.rule([this.value(0)], [this.object(this.string, this.value(depth - 1))], [this.array(this.value(depth - 1))]);
    this.#anyValue[depth] = value;
    return value;
  }

  /** Any object with values of limited nesting. */
  anyObject(): Term {
    return this.object(this.string, this.value());
  }

  /** Any object whose names match `name` and whose values match `value`. */
  object(name: Term, value: Term): Term {
    const { builder, whitespace } = this;
    const member = builder.rule([name, ...builder.text(':'), this.space, value]);
    return this.#commaSeparated('{', member, '}', whitespace);
  }

  /** Any array whose items match `item`. */
  array(item: Term): Term {
    return this.#commaSeparated('[', item, ']', this.whitespace);
  }

  /** Exactly this value, without white space. */
  literal(value: unknown): Term[] {
    return this.builder.text(JSON.stringify(value));
  }

  /** Any of the values. Builds a prefix tree, so that many values match as fast as few. */
  anyOf(values: readonly unknown[]): readonly Sequence[] {
    return this.#sequencesAfter(
      [...new Set(values.map((value) => JSON.stringify(value)))].map((text) => Array.from(text)).sort(compareByCodePoint),
      0,
    );
  }

  /** Alternatives after a common prefix of `at` characters. `texts` must be sorted and distinct. */
  #sequencesAfter(texts: readonly (readonly string[])[], at: number): readonly Sequence[] {
    const { builder } = this;
    const endings: Sequence[] = [];
    for (let from = 0; from < texts.length; ) {
      const first = texts[from] as readonly string[];
      let to = from + 1;
      while (to < texts.length && texts[to]?.[at] === first[at]) to++;
      const last = texts[to - 1] as readonly string[];
      let same = at;
      while (same < first.length && same < last.length && first[same] === last[same]) same++;
      const shared = builder.text(first.slice(at, same).join(''));
      endings.push(to - from === 1 ? shared : [...shared, builder.rule(...this.#sequencesAfter(texts.slice(from, to), same))]);
      from = to;
    }
    return endings;
  }

  /** Texts of a language as they are, without quotes or escapes, for example numbers. */
  unquoted(language: Language): Term {
    return this.#stateRules(this.languages.states(language), [], (ranges) => [[this.builder.class(ranges)]]);
  }

  /** Texts of a language as JSON strings. */
  quoted(language: Language): Term {
    if (language === this.languages.anyText) return this.string;
    const quote = this.builder.text('"');
    const states = this.#stateRules(this.languages.states(language, ANY_CHARACTER), quote, (ranges) => this.#spellings(ranges));
    return this.builder.rule([...quote, states]);
  }

  /** Strings with a length from `min` to `max` code points. Counts in blocks, to limit the number of rules. */
  stringOfLength(min: number, max: number): Term {
    const { builder, character } = this;
    const quote = builder.text('"');
    const block = Math.max(1, Math.ceil(Math.sqrt(max === Infinity ? min : max)));
    const blocks = (count: number, then: Term): Term => {
      const whole = count < block ? null : builder.rule(new Array<Term>(block).fill(character));
      let rest = then;
      let left = count;
      for (; whole !== null && left >= block; left -= block) rest = builder.rule([whole, rest]);
      return left === 0 ? rest : builder.rule([...new Array<Term>(left).fill(character), rest]);
    };
    if (max === Infinity) {
      const rest = builder.reserve();
      builder.define(rest, [quote, [character, rest]]);
      return builder.rule([...quote, blocks(min, rest)]);
    }
    return builder.rule([...quote, blocks(min, this.#atMost(max - min, block, quote))]);
  }

  /** At most `max` characters, then `end`. Counts in blocks of `block` characters. */
  #atMost(max: number, block: number, end: Sequence): Term {
    const { builder, character } = this;
    let short = builder.rule(end);
    for (let length = 1; length <= max % block; length++) short = builder.rule(end, [character, short]);
    let rest = short;
    if (max < block) return rest;
    let partial = builder.rule(end);
    for (let length = 1; length < block; length++) partial = builder.rule(end, [character, partial]);
    const whole = builder.rule(new Array<Term>(block).fill(character));
    for (let left = Math.floor(max / block); left > 0; left--) rest = builder.rule([partial], [whole, rest]);
    return rest;
  }

  /** Rule of an automaton's start state. `end` follows the text; `spellings`: alternatives for a character in the ranges. */
  #stateRules(states: readonly State[], end: Sequence, spellings: (ranges: readonly number[]) => readonly Sequence[]): Term {
    const { builder } = this;
    const rules = states.map(() => builder.reserve());
    for (const [id, { accepting, transitions }] of states.entries()) {
      const alternatives: Sequence[] = accepting ? [end] : [];
      for (const [to, ranges] of transitions) for (const spelling of spellings(ranges)) alternatives.push([...spelling, rules[to] as Term]);
      builder.define(rules[id] as Term, alternatives);
    }
    // An empty language has no states. A rule without alternatives matches nothing.
    return rules[0] ?? builder.rule();
  }

  /** Spellings of the characters in a JSON string, escaped only if necessary. */
  #spellings(ranges: readonly number[]): readonly Sequence[] {
    const { builder } = this;
    const plain = intersect(ranges, PLAIN);
    const spelled: Sequence[] = plain.length === 0 ? [] : [[builder.class(plain)]];
    for (const code of [...Array.from({ length: 0x20 }, (_, control) => control), 0x22, 0x5c]) {
      if (intersect(ranges, [code, code]).length > 0) spelled.push(builder.text(JSON.stringify(String.fromCodePoint(code)).slice(1, -1)));
    }
    return spelled;
  }

  /** Any number of items with commas between them, in brackets. */
  #commaSeparated(open: string, item: Term, close: string, whitespace: Term): Term {
    const { builder } = this;
    const end = builder.rule([whitespace, ...builder.text(close)]);
    const rest = builder.reserve();
    builder.define(rest, [[end], [...builder.text(','), whitespace, item, rest]]);
    return builder.rule([...builder.text(open), end], [...builder.text(open), whitespace, item, rest]);
  }

  /** See {@link whitespace}. */
  #whitespace(): Term {
    const { builder } = this;
    const blank = builder.class([0x09, 0x09, 0x20, 0x20]);
    let indent = builder.rule([]);
    for (let width = 1; width <= MAX_INDENT; width++) indent = builder.rule([], [blank, indent]);
    return builder.rule([], builder.text(' '), [...builder.text('\n'), indent]);
  }

  #character(): Term {
    const { builder } = this;
    const hex = builder.class(HEX);
    const from = (ranges: readonly number[]) => builder.class(ranges);
    const surrogate = (low: readonly number[]): Sequence => [...builder.text('\\u'), from([0x44, 0x44, 0x64, 0x64]), from(low), hex, hex];
    const unit = builder.rule(
      // 000[1-F], 00[1-F]X, 0[1-F]XX, [1-C,E,F]XXX and D[0-7]XX: no NUL and no surrogates, which many JSON parsers reject.
      [...builder.text('000'), from(HEX_NOT_ZERO)],
      [...builder.text('00'), from(HEX_NOT_ZERO), hex],
      [...builder.text('0'), from(HEX_NOT_ZERO), hex, hex],
      [from([0x31, 0x39, 0x41, 0x43, 0x61, 0x63, 0x45, 0x46, 0x65, 0x66]), hex, hex, hex],
      [from([0x44, 0x44, 0x64, 0x64]), from([0x30, 0x37]), hex, hex],
    );
    const pair = [...surrogate([0x38, 0x39, 0x41, 0x42, 0x61, 0x62]), ...surrogate([0x43, 0x46, 0x63, 0x66])];
    return builder.rule(
      [from(PLAIN)],
      [...builder.text('\\'), from(Array.from('"\\/bfnrt', (letter) => [letter.charCodeAt(0), letter.charCodeAt(0)]).flat())],
      [...builder.text('\\u'), unit],
      pair,
    );
  }
}

/** Orders by code point, so that texts with a common prefix are adjacent and prefixes come first. */
function compareByCodePoint(a: readonly string[], b: readonly string[]): number {
  const at = a.findIndex((character, index) => character !== b[index]);
  if (at < 0) return a.length - b.length;
  const [one = '', other = ''] = [a[at], b[at]];
  return one < other ? -1 : 1;
}

/** Ranges of the code points in both lists of ranges. */
function intersect(a: readonly number[], b: readonly number[]): number[] {
  const both: number[] = [];
  for (let i = 0; i + 1 < a.length; i += 2) {
    for (let j = 0; j + 1 < b.length; j += 2) {
      const [low, high] = [Math.max(a[i] as number, b[j] as number), Math.min(a[i + 1] as number, b[j + 1] as number)];
      if (low <= high) both.push(low, high);
    }
  }
  return both;
}
