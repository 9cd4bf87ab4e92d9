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
/** Maximum candidates for the next character of a state in `mayExceedPositions`. */
const MAX_CANDIDATES = 32;

/** A position in an alternative of a rule, with the position that follows the end of the alternative. */
interface Position {
  readonly id: number;
  readonly sequence: Sequence;
  /** Index of the next term in `sequence`. */
  readonly index: number;
  /** Position after the end of `sequence`; null at the end of the text. */
  readonly after: Position | null;
  /** UTF-8 bytes of the shortest text from this position to the end of the text. */
  readonly restBytes: number;
  /** Number of positions in the chain of `after`, this one included. */
  readonly depth: number;
  /** Positions whose `after` is this one, by `sequence` and `index`. Interned: equal positions are the same object. */
  readonly before: Map<Sequence, Map<number, Position>>;
}

/** All positions that the grammar can be in after a text. A null position means that the text may end. Immutable. */
export type MatcherState = readonly (Position | null)[];

export class GrammarMatcher {
  /** UTF-8 bytes of each class's representative. */
  readonly #classBytes: readonly number[];
  /** UTF-8 bytes of each rule's shortest text. */
  readonly #ruleBytes: readonly number[];
  /** For each rule, the first alternative that yields its shortest text. */
  readonly #shortest: readonly (Sequence | undefined)[];
  /** Positions without `after`, by `sequence` and `index`. */
  readonly #outermost = new Map<Sequence, Map<number, Position>>();
  /** By visited sequence: UTF-8 bytes of the shortest text of the last term, of the last two terms, and so on. */
  readonly #suffixBytes = new Map<Sequence, readonly number[]>();
  #positionCount = 0;

  constructor(private readonly grammar: Grammar) {
    const { classes, rules } = grammar;
    this.#classBytes = classes.map((ranges) => utf8Length(representative(ranges)));
    const ruleBytes = minRuleBytes(classes, rules);
    this.#ruleBytes = ruleBytes;
    this.#shortest = rules.map((alternatives, rule) => alternatives.find((each) => this.#bytesOf(each) === ruleBytes[rule]));
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

  /** Whether a search of at most about `steps` steps finds a text that exceeds the limits. Tries states with most positions first. */
  mayExceedPositions(from: MatcherState, steps: number): boolean {
    const seen = new Set([stateKey(from)]);
    /** Waiting states, by number of positions. */
    const waiting: MatcherState[][] = [];
    const enqueue = (state: MatcherState): void => {
      waiting[state.length] ??= [];
      waiting[state.length]?.push(state);
    };
    enqueue(from);
    for (let left = steps, max = waiting.length - 1; left > 0 && max > 0; ) {
      const state = waiting[max]?.pop();
      if (state === undefined) {
        max--;
        continue;
      }
      for (const code of this.#candidates(state)) {
        left--;
        const next = this.tryStep(state, code);
        if (next === null) return true;
        const key = stateKey(next);
        if (seen.has(key)) continue;
        seen.add(key);
        enqueue(next);
        max = Math.max(max, next.length);
      }
    }
    return false;
  }

  /** Candidates for the next character: one per range. If there are too many, those that the most positions accept. */
  #candidates(state: MatcherState): readonly number[] {
    /** Number of accepting positions, by code point. */
    const counts = new Map<number, number>();
    for (const position of state) {
      if (position === null) continue;
      const ranges = this.grammar.classes[~(position.sequence[position.index] as Term)] ?? [];
      for (let i = 0; i < Math.min(ranges.length, 2 * MAX_CANDIDATES); i += 2) {
        const code = ranges[i] as number;
        counts.set(code, (counts.get(code) ?? 0) + 1);
      }
    }
    if (counts.size <= MAX_CANDIDATES) return [...counts.keys()];
    return [...counts]
      .sort(([, a], [, b]) => b - a)
      .slice(0, MAX_CANDIDATES)
      .map(([code]) => code);
  }

  /** UTF-8 bytes of {@link rest}. */
  restBytes(state: MatcherState): number {
    return nearestToEnd(state)?.restBytes ?? 0;
  }

  /** Nesting depth of the position with the shortest completion. */
  depth(state: MatcherState): number {
    return nearestToEnd(state)?.depth ?? 0;
  }

  /** The shortest text that completes the match. */
  rest(state: MatcherState): string {
    let text = '';
    for (let position = nearestToEnd(state); position !== null; position = position.after) {
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

  /** Adds the positions at a term to `into`; expands rules until the next term is a class. `ruleDepth`: number of rules entered. */
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
    const interned = after === null ? this.#outermost : after.before;
    let positions = interned.get(sequence);
    if (positions === undefined) {
      positions = new Map();
      interned.set(sequence, positions);
    }
    let position = positions.get(index);
    if (position === undefined) {
      const restBytes = this.#bytesFrom(sequence, index) + (after?.restBytes ?? 0);
      position = { id: this.#positionCount++, sequence, index, after, restBytes, depth: (after?.depth ?? 0) + 1, before: new Map() };
      positions.set(index, position);
    }
    return position;
  }

  /** UTF-8 bytes of the shortest text from a term to the end of the sequence. */
  #bytesFrom(sequence: Sequence, index: number): number {
    let suffixBytes = this.#suffixBytes.get(sequence);
    if (suffixBytes === undefined) {
      let bytes = 0;
      suffixBytes = sequence.reduceRight<number[]>((all, term) => {
        bytes += this.#bytesOf([term]);
        all.push(bytes);
        return all;
      }, []);
      this.#suffixBytes.set(sequence, suffixBytes);
    }
    return suffixBytes[sequence.length - 1 - index] ?? 0;
  }

  #bytesOf(sequence: Sequence): number {
    return sequenceBytes(sequence, this.#ruleBytes, this.#classBytes);
  }
}

/** Adds a position unless present. Throws {@link GrammarTooLarge} for too many positions. */
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
function nearestToEnd(state: MatcherState): Position | null {
  let best: Position | null = null;
  for (const position of state) {
    if (position === null) return null;
    if (best === null || position.restBytes < best.restBytes) best = position;
  }
  return best;
}
