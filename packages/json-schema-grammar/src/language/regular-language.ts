/**
 * Regular languages with union, intersection and complement, represented as expressions with Brzozowski derivatives (1964).
 *
 * The derivative of a language by a character contains the rests of its texts that begin with the character. Expressions are
 * interned: equal expressions are the same object.
 */

import { inRanges } from '../grammar/grammar.js';

/** State of an automaton inside an expression, for counts and comparisons that would need exponentially large expressions. */
export interface Leaf {
  /** Leaves with equal keys are interchangeable. */
  readonly key: string;
  /** Whether the text may end in this state. */
  readonly nullable: boolean;
  /** Code points at which the result of `step` changes. */
  readonly cuts: readonly number[];
  /** State after a character; null if no text continues with the character. */
  step(code: number): Leaf | null;
}

/** A set of texts. `nothing` has no text, `empty` only the empty text. */
export type Language = {
  readonly id: number;
  /** Whether the language contains the empty text. */
  readonly nullable: boolean;
} & (
  | { readonly kind: 'nothing' | 'empty' }
  | { readonly kind: 'one_of'; readonly ranges: readonly number[] }
  | { readonly kind: 'sequence'; readonly first: Language; readonly then: Language }
  | { readonly kind: 'either' | 'all'; readonly parts: readonly Language[] }
  | { readonly kind: 'not'; readonly of: Language }
  | { readonly kind: 'repeat'; readonly of: Language; readonly min: number; readonly max: number }
  | { readonly kind: 'leaf'; readonly leaf: Leaf }
);

/** Maximum expressions per schema. Compilation blocks other requests meanwhile. */
const MAX_EXPRESSIONS = 40_000;
/** Maximum states of one language's automaton. */
const MAX_STATES = 3000;

/** The language needs more expressions or states than allowed. */
export class LanguageTooLarge extends Error {
  constructor() {
    super('the language is too large');
    this.name = 'LanguageTooLarge';
  }
}

/** All code points except NUL and surrogates. */
export const ANY_CHARACTER: readonly number[] = [1, 0xd7ff, 0xe000, 0x10ffff];

/** State of a deterministic automaton. */
export interface State {
  /** Whether the text may end in this state. */
  readonly accepting: boolean;
  /** From target state to flat ranges of code points. Omits targets from which no accepting state is reachable. */
  readonly transitions: ReadonlyMap<number, readonly number[]>;
}

/** Creates and interns expressions. Create one instance per schema, so that the memory is freed with the request. */
export class LanguageFactory {
  /** All expressions, by their key in {@link #intern}. */
  readonly #expressions = new Map<string, Language>();
  /** Derivatives, by expression and code point. */
  readonly #derivatives = new Map<number, Language>();
  /** Results of {@link cuts}. */
  readonly #cuts = new Map<Language, readonly number[]>();
  /** The language without texts. */
  readonly nothing = this.#intern('0', false, { kind: 'nothing' });
  /** The language of the empty text. */
  readonly empty = this.#intern('e', true, { kind: 'empty' });
  readonly any = this.characterClass(ANY_CHARACTER);
  readonly anyText = this.repeat(this.any, 0, Infinity);

  /** Texts of one character in the ranges, which need not be sorted. */
  characterClass(ranges: readonly number[]): Language {
    const sorted = normalise(ranges);
    return sorted.length === 0 ? this.nothing : this.#intern(`[${sorted.join()}`, false, { kind: 'one_of', ranges: sorted });
  }

  /** The language of one text. */
  text(text: string): Language {
    return Array.from(text, (character) => character.codePointAt(0) ?? 0).reduceRight(
      (then, code) => this.concatenation(this.characterClass([code, code]), then),
      this.empty,
    );
  }

  concatenation(first: Language, ...others: readonly Language[]): Language {
    const [next, ...rest] = others;
    if (next === undefined) return first;
    const then = this.concatenation(next, ...rest);
    if (first.kind === 'nothing' || then.kind === 'nothing') return this.nothing;
    if (first.kind === 'empty') return then;
    if (then.kind === 'empty') return first;
    if (first.kind === 'sequence') return this.concatenation(first.first, this.concatenation(first.then, then));
    return this.#intern(`.${first.id},${then.id}`, first.nullable && then.nullable, { kind: 'sequence', first, then });
  }

  union(...parts: readonly Language[]): Language {
    const flat = uniqueLanguages(parts.flatMap((part) => (part.kind === 'either' ? part.parts : [part]))).filter(
      ({ kind }) => kind !== 'nothing',
    );
    const [only, ...others] = flat;
    if (only === undefined) return this.nothing;
    if (others.length === 0) return only;
    return this.#intern(
      `|${flat.map(({ id }) => id)}`,
      flat.some(({ nullable }) => nullable),
      { kind: 'either', parts: flat },
    );
  }

  intersection(...parts: readonly Language[]): Language {
    const flat = uniqueLanguages(parts.flatMap((part) => (part.kind === 'all' ? part.parts : [part])));
    if (flat.some(({ kind }) => kind === 'nothing')) return this.nothing;
    const [only, ...others] = flat;
    if (only === undefined) return this.complement(this.nothing);
    if (others.length === 0) return only;
    return this.#intern(
      `&${flat.map(({ id }) => id)}`,
      flat.every(({ nullable }) => nullable),
      { kind: 'all', parts: flat },
    );
  }

  /** All other texts. */
  complement(of: Language): Language {
    return of.kind === 'not' ? of.of : this.#intern(`!${of.id}`, !of.nullable, { kind: 'not', of });
  }

  /** From `min` to `max` texts of a language, one after another. */
  repeat(of: Language, min: number, max: number): Language {
    if (max === 0 || of.kind === 'empty') return this.empty;
    if (of.kind === 'nothing') return min === 0 ? this.empty : this.nothing;
    if (min === 1 && max === 1) return of;
    if (of.kind === 'repeat' && of.min === 0 && of.max === Infinity) return of;
    return this.#intern(`*${of.id},${min},${max}`, min === 0 || of.nullable, { kind: 'repeat', of, min, max });
  }

  optional(of: Language): Language {
    return this.repeat(of, 0, 1);
  }

  leaf(leaf: Leaf): Language {
    return this.#intern(`<${leaf.key}`, leaf.nullable, { kind: 'leaf', leaf });
  }

  /** Rests of the texts that begin with a character. */
  derivative(language: Language, code: number): Language {
    // Codes range from -2 (a marker of `pattern-language.ts`) to 0x10ffff.
    const key = language.id * 0x110010 + code + 2;
    let next = this.#derivatives.get(key);
    if (next === undefined) {
      next = this.#derive(language, code);
      this.#derivatives.set(key, next);
    }
    return next;
  }

  #derive(language: Language, code: number): Language {
    switch (language.kind) {
      case 'nothing':
      case 'empty':
        return this.nothing;
      case 'one_of':
        return inRanges(language.ranges, code) ? this.empty : this.nothing;
      case 'sequence': {
        const { first, then } = language;
        const inFirst = this.concatenation(this.derivative(first, code), then);
        return first.nullable ? this.union(inFirst, this.derivative(then, code)) : inFirst;
      }
      case 'either':
        return this.union(...language.parts.map((part) => this.derivative(part, code)));
      case 'all':
        return this.intersection(...language.parts.map((part) => this.derivative(part, code)));
      case 'not':
        return this.complement(this.derivative(language.of, code));
      case 'repeat': {
        const { of, min, max } = language;
        // If the repeated language contains the empty text, any minimum count can be reached.
        const rest = this.repeat(of, of.nullable ? 0 : Math.max(0, min - 1), max - 1);
        return this.concatenation(this.derivative(of, code), rest);
      }
      case 'leaf': {
        const next = language.leaf.step(code);
        return next === null ? this.nothing : this.leaf(next);
      }
      default:
        return language satisfies never;
    }
  }

  /** Sorted code points at which the derivative changes: it is the same for all characters between two neighbours. */
  cuts(language: Language): readonly number[] {
    let sorted = this.#cuts.get(language);
    if (sorted === undefined) {
      const cuts = new Set<number>();
      addCuts(language, cuts, new Set());
      sorted = [...cuts].sort((a, b) => a - b);
      this.#cuts.set(language, sorted);
    }
    return sorted;
  }

  /** Tests membership in time linear in the length of the text. */
  contains(language: Language, text: string): boolean {
    let rest = language;
    for (const character of text) rest = this.derivative(rest, character.codePointAt(0) ?? 0);
    return rest.nullable;
  }

  /**
   * States of the deterministic automaton over the alphabet `codes`, start state first; empty for the empty language.
   *
   * @throws {LanguageTooLarge}
   */
  states(language: Language, codes: readonly number[] = ANY_CHARACTER): readonly State[] {
    /** Language of each state: the texts that lead from the state to an accepting state. */
    const order = [language];
    const ids = new Map([[language, 0]]);
    const transitions: Map<number, number[]>[] = [];
    for (let at = 0; at < order.length; at++) {
      const from = order[at] as Language;
      const out = new Map<number, number[]>();
      for (const [low, high] of segments(this.cuts(from), codes)) {
        const to = this.derivative(from, low);
        if (to.kind === 'nothing') continue;
        let id = ids.get(to);
        if (id === undefined) {
          if (order.length >= MAX_STATES) throw new LanguageTooLarge();
          id = order.push(to) - 1;
          ids.set(to, id);
        }
        const ranges = out.get(id) ?? [];
        if (ranges.at(-1) === low - 1) ranges[ranges.length - 1] = high;
        else ranges.push(low, high);
        out.set(id, ranges);
      }
      transitions.push(out);
    }
    const alive = statesReaching(
      order.map(({ nullable }) => nullable),
      transitions,
    );
    if (!alive[0]) return [];
    return order.map(({ nullable }, id) => ({
      accepting: nullable,
      transitions: new Map([...(transitions[id] ?? [])].filter(([to]) => alive[to])),
    }));
  }

  /** The expression with this key, created if new. Throws {@link LanguageTooLarge}. */
  #intern(key: string, nullable: boolean, members: object): Language {
    const known = this.#expressions.get(key);
    if (known !== undefined) return known;
    if (this.#expressions.size >= MAX_EXPRESSIONS) throw new LanguageTooLarge();
    const created = { id: this.#expressions.size, nullable, ...members } as Language;
    this.#expressions.set(key, created);
    return created;
  }
}

/** The ranges `codes`, split at the cuts. */
function segments(cuts: readonly number[], codes: readonly number[]): (readonly [number, number])[] {
  const found: (readonly [number, number])[] = [];
  for (let i = 0; i + 1 < codes.length; i += 2) {
    let low = codes[i] as number;
    const high = codes[i + 1] as number;
    for (const cut of cuts) {
      if (cut <= low || cut > high) continue;
      found.push([low, cut - 1]);
      low = cut;
    }
    found.push([low, high]);
  }
  return found;
}

/** Adds the cuts of a language to `cuts`, unless the language is in `seen`. */
function addCuts(language: Language, cuts: Set<number>, seen: Set<Language>): void {
  if (seen.has(language)) return;
  seen.add(language);
  switch (language.kind) {
    case 'nothing':
    case 'empty':
      return;
    case 'one_of':
      for (let i = 0; i + 1 < language.ranges.length; i += 2) {
        cuts.add(language.ranges[i] as number).add((language.ranges[i + 1] as number) + 1);
      }
      return;
    case 'sequence':
      addCuts(language.first, cuts, seen);
      if (language.first.nullable) addCuts(language.then, cuts, seen);
      return;
    case 'either':
    case 'all':
      for (const part of language.parts) addCuts(part, cuts, seen);
      return;
    case 'not':
    case 'repeat':
      addCuts(language.of, cuts, seen);
      return;
    case 'leaf':
      for (const cut of language.leaf.cuts) cuts.add(cut);
      return;
    default:
      language satisfies never;
  }
}

/** For each state, whether an accepting state is reachable. */
function statesReaching(accepting: readonly boolean[], transitions: readonly ReadonlyMap<number, unknown>[]): readonly boolean[] {
  const sources = accepting.map((): number[] => []);
  for (const [from, out] of transitions.entries()) for (const to of out.keys()) sources[to]?.push(from);
  const alive = [...accepting];
  const waiting = alive.flatMap((isAlive, state) => (isAlive ? [state] : []));
  for (let state = waiting.pop(); state !== undefined; state = waiting.pop()) {
    for (const from of sources[state] ?? []) {
      if (alive[from]) continue;
      alive[from] = true;
      waiting.push(from);
    }
  }
  return alive;
}

/** Distinct languages, in order of creation, so that equal sets have equal keys. */
function uniqueLanguages(parts: readonly Language[]): Language[] {
  return [...new Set(parts)].sort((a, b) => a.id - b.id);
}

/** The same code points in sorted ranges, without overlapping and adjacent ranges. */
export function normalise(ranges: readonly number[]): number[] {
  const pairs: [number, number][] = [];
  for (let i = 0; i + 1 < ranges.length; i += 2) pairs.push([ranges[i] as number, ranges[i + 1] as number]);
  pairs.sort((a, b) => a[0] - b[0]);
  const joined: number[] = [];
  for (const [low, high] of pairs) {
    if (low > high) continue;
    const last = joined.at(-1);
    if (last !== undefined && low <= last + 1) joined[joined.length - 1] = Math.max(last, high);
    else joined.push(low, high);
  }
  return joined;
}
