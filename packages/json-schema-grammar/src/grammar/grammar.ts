/** `Grammar`: context-free grammar over code points, as plain data for the engine process. `GrammarBuilder` creates one. */

/** Inclusive ranges of code points, flat: from, to, from, to. */
export type CodePointRanges = readonly number[];
/** Index of a rule; or, if negative, `~index` of a character class. */
export type Term = number;
export type Sequence = readonly Term[];

export interface Grammar {
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
  readonly #classIds = new Map<string, Term>();
  readonly #characters = new Map<string, Term>();
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

  define(rule: Term, alternatives: readonly Sequence[]): Term {
    this.#rules[rule] = [...alternatives];
    return rule;
  }

  rule(...alternatives: readonly Sequence[]): Term {
    return this.define(this.reserve(), alternatives);
  }

  class(ranges: CodePointRanges): Term {
    const key = ranges.join();
    let id = this.#classIds.get(key);
    if (id === undefined) {
      id = ~(this.#classes.push(ranges) - 1);
      this.#classIds.set(key, id);
    }
    return id;
  }

  /** Matches exactly this text. */
  text(text: string): Term[] {
    return Array.from(text, (character) => {
      let id = this.#characters.get(character);
      if (id === undefined) {
        const code = character.codePointAt(0) ?? 0;
        id = this.class([code, code]);
        this.#characters.set(character, id);
      }
      return id;
    });
  }

  /** Builds the grammar without unused rules and endless alternatives. Returns null if the root matches no finite text. */
  grammar(root: Term): Grammar | null {
    const costs = minRuleBytes(this.#classes, this.#rules);
    const isProductive = (term: Term) => term < 0 || (costs[term] ?? Infinity) < Infinity;
    if (!isProductive(root)) return null;
    const ids = new Map<Term, number>();
    const order: Term[] = [];
    const idOf = (term: Term): Term => {
      if (term < 0) return term;
      let id = ids.get(term);
      if (id === undefined) {
        id = order.push(term) - 1;
        ids.set(term, id);
      }
      return id;
    };
    idOf(root);
    const rules: Sequence[][] = [];
    for (let at = 0; at < order.length; at++) {
      const alternatives = this.#rules[order[at] as number] ?? [];
      rules.push(alternatives.filter((sequence) => sequence.every(isProductive)).map((sequence) => sequence.map(idOf)));
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
  const classCosts = classes.map((ranges) => utf8Length(representative(ranges)));
  const costs = new Array<number>(rules.length).fill(Infinity);
  const users = new Map<number, Set<number>>();
  for (const [rule, alternatives] of rules.entries()) {
    for (const term of alternatives.flat()) {
      if (term < 0) continue;
      const known = users.get(term);
      if (known === undefined) users.set(term, new Set([rule]));
      else known.add(rule);
    }
  }
  // Visits the last rules first: they refer to few others, so most costs are final at the first visit.
  const waiting = rules.map((_, rule) => rule);
  const isWaiting = new Array<boolean>(rules.length).fill(true);
  for (let rule = waiting.pop(); rule !== undefined; rule = waiting.pop()) {
    isWaiting[rule] = false;
    const cost = Math.min(...(rules[rule] ?? []).map((sequence) => sequenceBytes(sequence, costs, classCosts)), Infinity);
    if (cost >= (costs[rule] as number)) continue;
    costs[rule] = cost;
    for (const user of users.get(rule) ?? []) {
      if (isWaiting[user]) continue;
      isWaiting[user] = true;
      waiting.push(user);
    }
  }
  return costs;
}

export function sequenceBytes(sequence: Sequence, ruleCosts: readonly number[], classCosts: readonly number[]): number {
  let sum = 0;
  for (const term of sequence) sum += term < 0 ? (classCosts[~term] ?? Infinity) : (ruleCosts[term] ?? Infinity);
  return sum;
}
