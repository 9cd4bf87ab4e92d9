/**
 * `GrammarMatcher` matches a text against a grammar character by character, with the same algorithm as llama.cpp.
 *
 * The matcher also computes the shortest completion, so that the engine can close a JSON value when tokens run out.
 */
import {
  type Grammar,
  GrammarTooLarge,
  inRanges,
  minRuleBytes,
  representative,
  type Sequence,
  sequenceBytes,
  type Term,
  utf8Length,
} from './grammar.js';

/** Maximum parallel positions (stacks in llama.cpp). llama.cpp compares them pairwise; thousands would block all streams for minutes. */
const MAX_POSITIONS = 512;
/** Maximum nesting of rules at one character. Both this matcher and llama.cpp recurse once per rule. */
const MAX_RULE_DEPTH = 1000;
/** Maximum candidate characters per state in `mayExceedPositions`. */
const MAX_TRIED_CHARACTERS = 32;

/** A position in a rule's sequence, with the position that follows the end of the sequence. */
interface Position {
  readonly id: number;
  readonly sequence: Sequence;
  readonly index: number;
  readonly after: Position | null;
  /** UTF-8 bytes of the shortest text from this position to the end. */
  readonly cost: number;
  readonly depth: number;
  /** Interned positions that continue here, so that equal positions are the same object. */
  readonly before: Map<Sequence, Map<number, Position>>;
}

/** All positions that the grammar can be in after a text. A null position means that the text may end. Immutable. */
export type MatcherState = readonly (Position | null)[];

export class GrammarMatcher {
  readonly #classCosts: readonly number[];
  readonly #costs: readonly number[];
  /** For each rule, the first alternative that yields its shortest text. */
  readonly #shortest: readonly (Sequence | undefined)[];
  readonly #first = new Map<Sequence, Map<number, Position>>();
  /** For each visited sequence, the cost from each term to the end of the sequence, in reverse order. */
  readonly #restCosts = new Map<Sequence, readonly number[]>();
  #positionCount = 0;

  constructor(private readonly grammar: Grammar) {
    const { classes, rules } = grammar;
    this.#classCosts = classes.map((ranges) => utf8Length(representative(ranges)));
    const costs = minRuleBytes(classes, rules);
    this.#costs = costs;
    this.#shortest = rules.map((alternatives, rule) => alternatives.find((each) => this.#sum(each) === costs[rule]));
  }

  /** State before the first character. Throws {@link GrammarTooLarge} for too many positions or too deep rules, like {@link step}. */
  start(): MatcherState {
    const positions: (Position | null)[] = [];
    for (const sequence of this.grammar.rules[0] ?? []) this.#enter(sequence, 0, null, positions);
    return positions;
  }

  /** State after one more character; empty if the character does not match. */
  step(state: MatcherState, code: number): MatcherState {
    const next: (Position | null)[] = [];
    for (const position of state) {
      if (position === null || !inRanges(this.grammar.classes[~(position.sequence[position.index] as Term)] ?? [], code)) continue;
      this.#enter(position.sequence, position.index + 1, position.after, next);
    }
    return next;
  }

  /** Like {@link step}, but returns null instead of throwing {@link GrammarTooLarge}. */
  tryStep(state: MatcherState, code: number): MatcherState | null {
    try {
      return this.step(state, code);
    } catch (error) {
      if (error instanceof GrammarTooLarge) return null;
      throw error;
    }
  }

  /** Searches for a text that reaches too many positions: tries `steps` characters, from the states with the most positions first. */
  mayExceedPositions(from: MatcherState, steps: number): boolean {
    const seen = new Set([stateKey(from)]);
    const waiting: MatcherState[][] = [];
    const wait = (state: MatcherState): void => {
      waiting[state.length] ??= [];
      waiting[state.length]?.push(state);
    };
    wait(from);
    for (let left = steps, max = waiting.length - 1; left > 0 && max > 0; ) {
      const state = waiting[max]?.pop();
      if (state === undefined) {
        max--;
        continue;
      }
      for (const code of this.#codes(state)) {
        left--;
        const next = this.tryStep(state, code);
        if (next === null) return true;
        const name = stateKey(next);
        if (seen.has(name)) continue;
        seen.add(name);
        wait(next);
        max = Math.max(max, next.length);
      }
    }
    return false;
  }

  /** Candidates for the next character: one per range. If there are too many, those that the most positions accept. */
  #codes(state: MatcherState): readonly number[] {
    const counts = new Map<number, number>();
    for (const position of state) {
      if (position === null) continue;
      const ranges = this.grammar.classes[~(position.sequence[position.index] as Term)] ?? [];
      for (let i = 0; i < Math.min(ranges.length, 2 * MAX_TRIED_CHARACTERS); i += 2) {
        const code = ranges[i] as number;
        counts.set(code, (counts.get(code) ?? 0) + 1);
      }
    }
    if (counts.size <= MAX_TRIED_CHARACTERS) return [...counts.keys()];
    return [...counts]
      .sort(([, a], [, b]) => b - a)
      .slice(0, MAX_TRIED_CHARACTERS)
      .map(([code]) => code);
  }

  /** UTF-8 bytes of {@link rest}. */
  cost(state: MatcherState): number {
    return cheapest(state)?.cost ?? 0;
  }

  /** Nesting depth of the cheapest position. */
  depth(state: MatcherState): number {
    return cheapest(state)?.depth ?? 0;
  }

  /** The shortest text that completes the match. */
  rest(state: MatcherState): string {
    let text = '';
    for (let position = cheapest(state); position !== null; position = position.after) {
      text += this.#shortestText(position.sequence.slice(position.index));
    }
    return text;
  }

  #shortestText(sequence: Sequence): string {
    let text = '';
    const waiting = [...sequence].reverse();
    for (let term = waiting.pop(); term !== undefined; term = waiting.pop()) {
      if (term < 0) text += String.fromCodePoint(representative(this.grammar.classes[~term] ?? []));
      else waiting.push(...[...(this.#shortest[term] ?? [])].reverse());
    }
    return text;
  }

  /** Expands rules until the next term is a character class. `ruleDepth`: number of rules entered. */
  #enter(sequence: Sequence, index: number, after: Position | null, into: (Position | null)[], ruleDepth = 0): void {
    if (ruleDepth > MAX_RULE_DEPTH) throw new GrammarTooLarge();
    const term = sequence[index];
    if (term === undefined) {
      if (after !== null) this.#enter(after.sequence, after.index, after.after, into, ruleDepth + 1);
      else add(null, into);
      return;
    }
    if (term < 0) {
      add(this.#position(sequence, index, after), into);
      return;
    }
    const follows = index + 1 === sequence.length ? after : this.#position(sequence, index + 1, after);
    for (const alternative of this.grammar.rules[term] ?? []) this.#enter(alternative, 0, follows, into, ruleDepth + 1);
  }

  #position(sequence: Sequence, index: number, after: Position | null): Position {
    const known = after === null ? this.#first : after.before;
    let positions = known.get(sequence);
    if (positions === undefined) {
      positions = new Map();
      known.set(sequence, positions);
    }
    let position = positions.get(index);
    if (position === undefined) {
      const cost = this.#restCost(sequence, index) + (after?.cost ?? 0);
      position = { id: this.#positionCount++, sequence, index, after, cost, depth: (after?.depth ?? 0) + 1, before: new Map() };
      positions.set(index, position);
    }
    return position;
  }

  #restCost(sequence: Sequence, index: number): number {
    let costs = this.#restCosts.get(sequence);
    if (costs === undefined) {
      let cost = 0;
      costs = sequence.reduceRight<number[]>((all, term) => {
        cost += this.#sum([term]);
        all.push(cost);
        return all;
      }, []);
      this.#restCosts.set(sequence, costs);
    }
    return costs[sequence.length - 1 - index] ?? 0;
  }

  #sum(sequence: Sequence): number {
    return sequenceBytes(sequence, this.#costs, this.#classCosts);
  }
}

/** Throws {@link GrammarTooLarge} for too many positions. */
function add(position: Position | null, into: (Position | null)[]): void {
  if (into.includes(position)) return;
  if (into.length === MAX_POSITIONS) throw new GrammarTooLarge();
  into.push(position);
}

/** Key of a state; equal states have equal keys. */
export function stateKey(state: MatcherState): string {
  return state.map((position) => position?.id ?? '').join();
}

/** The position with the shortest completion; null if the text may end. */
function cheapest(state: MatcherState): Position | null {
  let best: Position | null = null;
  for (const position of state) {
    if (position === null) return null;
    if (best === null || position.cost < best.cost) best = position;
  }
  return best;
}
