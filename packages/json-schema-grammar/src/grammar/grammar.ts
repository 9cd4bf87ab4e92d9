/** `Grammar`: context-free grammar over code points, as plain data for the engine process. `GrammarBuilder` creates one. */

/** Inclusive ranges of code points, flat: from, to, from, to. */
export type CodePointRanges = readonly number[];
/** A rule or a character class: the index of a rule; or, if negative, `~index` of a class. */
export type Term = number;
/** Terms that follow one another. */
export type Sequence = readonly Term[];

export interface Grammar {
  /** Character classes: each matches one code point in its ranges. */
  readonly classes: readonly CodePointRanges[];
  /** Alternatives of each rule. Rule 0 is the root. An empty sequence matches the empty text. Left recursion is not allowed. */
  readonly rules: readonly (readonly Sequence[])[];
}

/** Maximum rules per request. */
const MAX_RULES = 20_000;

export class GrammarTooLarge extends Error {
  constructor() {
    super('the grammar is too large');
    this.name = 'GrammarTooLarge';
  }
}

export class GrammarBuilder {
  readonly #classes: CodePointRanges[] = [];
  /** Classes by their joined ranges. */
  readonly #classTerms = new Map<string, Term>();
  /** Classes of a single character, by the character. */
  readonly #characterTerms = new Map<string, Term>();
  /** Alternatives of each rule. */
  readonly #rules: Sequence[][] = [];

  /** Number of reserved rules. */
  get size(): number {
    return this.#rules.length;
  }

  /** Reserves a rule, which the caller must `define` later. Throws {@link GrammarTooLarge}. */
  reserve(): Term {
    if (this.#rules.length >= MAX_RULES) throw new GrammarTooLarge();
    return this.#rules.push([]) - 1;
  }

  /** Sets the alternatives of a reserved rule, and returns the rule. */
  define(rule: Term, alternatives: readonly Sequence[]): Term {
    this.#rules[rule] = [...alternatives];
    return rule;
  }

  /** Adds a rule with these alternatives; a rule without alternatives matches nothing. Throws {@link GrammarTooLarge}. */
  rule(...alternatives: readonly Sequence[]): Term {
    return this.define(this.reserve(), alternatives);
  }

  /** The class of the code points in the ranges. */
  class(ranges: CodePointRanges): Term {
    const key = ranges.join();
    let term = this.#classTerms.get(key);
    if (term === undefined) {
      term = ~(this.#classes.push(ranges) - 1);
      this.#classTerms.set(key, term);
    }
    return term;
  }

  /** Terms that match exactly this text. */
  text(text: string): Term[] {
    return Array.from(text, (character) => {
      let term = this.#characterTerms.get(character);
      if (term === undefined) {
        const code = character.codePointAt(0) ?? 0;
        term = this.class([code, code]);
        this.#characterTerms.set(character, term);
      }
      return term;
    });
  }

  /** The grammar with this root, without unused rules and alternatives that match no finite text. Null if the root matches none. */
  grammar(root: Term): Grammar | null {
    const ruleBytes = minRuleBytes(this.#classes, this.#rules);
    const isProductive = (term: Term) => term < 0 || (ruleBytes[term] ?? Infinity) < Infinity;
    if (!isProductive(root)) return null;
    const newIndexes = new Map<Term, number>();
    const usedRules: Term[] = [];
    const renumbered = (term: Term): Term => {
      if (term < 0) return term;
      let index = newIndexes.get(term);
      if (index === undefined) {
        index = usedRules.push(term) - 1;
        newIndexes.set(term, index);
      }
      return index;
    };
    renumbered(root);
    const rules: Sequence[][] = [];
    // `renumbered` appends to `usedRules` during the loop.
    for (let at = 0; at < usedRules.length; at++) {
      const alternatives = this.#rules[usedRules[at] as number] ?? [];
      rules.push(alternatives.filter((sequence) => sequence.every(isProductive)).map((sequence) => sequence.map(renumbered)));
    }
    return { classes: this.#classes, rules };
  }
}

/** The character of a class that shortest texts use: a quote, `a` or `0` if in the class, otherwise the first. */
export function representative(ranges: CodePointRanges): number {
  for (const preferred of [0x22, 0x61, 0x30]) if (inRanges(ranges, preferred)) return preferred;
  return ranges[0] ?? 0;
}

export function inRanges(ranges: CodePointRanges, code: number): boolean {
  for (let i = 0; i + 1 < ranges.length; i += 2) {
    if (code >= (ranges[i] as number) && code <= (ranges[i + 1] as number)) return true;
  }
  return false;
}

/** Number of UTF-8 bytes of a code point. */
export function utf8Length(code: number): number {
  return code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
}

/** Number of UTF-8 bytes of the shortest text of each rule; Infinity for rules that match no finite text. */
export function minRuleBytes(classes: readonly CodePointRanges[], rules: readonly (readonly Sequence[])[]): number[] {
  const classBytes = classes.map((ranges) => utf8Length(representative(ranges)));
  const ruleBytes = new Array<number>(rules.length).fill(Infinity);
  /** By rule: rules that refer to the rule. */
  const users = new Map<number, Set<number>>();
  for (const [rule, alternatives] of rules.entries()) {
    for (const term of alternatives.flat()) {
      if (term < 0) continue;
      const known = users.get(term);
      if (known === undefined) users.set(term, new Set([rule]));
      else known.add(rule);
    }
  }
  // Visits the last rules first: they refer to few others, so most lengths are final at the first visit.
  const waiting = rules.map((_, rule) => rule);
  const isWaiting = new Array<boolean>(rules.length).fill(true);
  for (let rule = waiting.pop(); rule !== undefined; rule = waiting.pop()) {
    isWaiting[rule] = false;
    const bytes = Math.min(...(rules[rule] ?? []).map((sequence) => sequenceBytes(sequence, ruleBytes, classBytes)), Infinity);
    if (bytes >= (ruleBytes[rule] as number)) continue;
    ruleBytes[rule] = bytes;
    for (const user of users.get(rule) ?? []) {
      if (isWaiting[user]) continue;
      isWaiting[user] = true;
      waiting.push(user);
    }
  }
  return ruleBytes;
}

/** Number of UTF-8 bytes of the shortest text of a sequence. */
export function sequenceBytes(sequence: Sequence, ruleBytes: readonly number[], classBytes: readonly number[]): number {
  let sum = 0;
  for (const term of sequence) sum += term < 0 ? (classBytes[~term] ?? Infinity) : (ruleBytes[term] ?? Infinity);
  return sum;
}
