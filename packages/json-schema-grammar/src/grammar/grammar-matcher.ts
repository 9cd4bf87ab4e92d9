/**
 * Follows a text through a grammar, character by character, and knows at every place the shortest text that would end it.
 * It reads the same rules as llama.cpp in the same way (a set of stacks), so the two always agree.
 */
import { bytesOf, type Grammar, GrammarTooLarge, inRanges, minCosts, plainest, type Sequence, sequenceCost, type Term } from './grammar.js';

/**
 * Places that a text may be at. llama.cpp looks at each of them for each token of the vocabulary, and compares each with all others for
 * each character that was written: with a few thousand, a token takes minutes, for all streams of the model.
 */
const MAX_PLACES = 512;
/** Rules that begin with one another: whoever follows them calls itself for each, llama.cpp included. */
const MAX_RULES_WITHIN = 1000;
/** Characters that are tried at each place. */
const TRIED_AHEAD = 32;

/** A place in a sequence, with what follows after the sequence's end. */
interface Place {
  readonly id: number;
  readonly sequence: Sequence;
  readonly index: number;
  readonly after: Place | null;
  /** UTF-8 bytes of the shortest text from here to the end. */
  readonly cost: number;
  readonly depth: number;
  /** Places that this one follows, so that equal places are one object. */
  readonly before: Map<Sequence, Map<number, Place>>;
}

/** Where a text stands: all places it may be at. Null among them: the text may end here. Never changes. */
export type MachineState = readonly (Place | null)[];

export class GrammarMachine {
  readonly #classCosts: readonly number[];
  readonly #costs: readonly number[];
  /** First characters of rules in a shortest text: the alternative to take. */
  readonly #shortest: readonly (Sequence | undefined)[];
  readonly #first = new Map<Sequence, Map<number, Place>>();
  /** Of each sequence that was entered: the cost from each of its terms to its end. */
  readonly #restCosts = new Map<Sequence, readonly number[]>();
  #places = 0;

  constructor(private readonly grammar: Grammar) {
    const { classes, rules } = grammar;
    this.#classCosts = classes.map((ranges) => bytesOf(plainest(ranges)));
    const costs = minCosts(classes, rules);
    this.#costs = costs;
    this.#shortest = rules.map((alternatives, rule) => alternatives.find((each) => this.#sum(each) === costs[rule]));
  }

  /** Throws {@link GrammarTooLarge} where a text is at too many places, or where rules begin with too many others, as does {@link step}. */
  start(): MachineState {
    const places: (Place | null)[] = [];
    for (const sequence of this.grammar.rules[0] ?? []) this.#enter(sequence, 0, null, places);
    return places;
  }

  /** The state after one more character, empty when the character does not fit. */
  step(state: MachineState, code: number): MachineState {
    const next: (Place | null)[] = [];
    for (const place of state) {
      if (place === null || !inRanges(this.grammar.classes[~(place.sequence[place.index] as Term)] ?? [], code)) continue;
      this.#enter(place.sequence, place.index + 1, place.after, next);
    }
    return next;
  }

  /** As {@link step}, but null where the grammar is too large to follow. */
  tryStep(state: MachineState, code: number): MachineState | null {
    try {
      return this.step(state, code);
    } catch (error) {
      if (error instanceof GrammarTooLarge) return null;
      throw error;
    }
  }

  /**
   * Whether a text may get to too many places. An estimate: looks `steps` characters ahead in all, always where the most places are,
   * so that it sees all that is near and what grows on the way.
   */
  mayCrowd(from: MachineState, steps: number): boolean {
    const seen = new Set([nameOf(from)]);
    const waiting: MachineState[][] = [];
    const wait = (state: MachineState): void => {
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
        const name = nameOf(next);
        if (seen.has(name)) continue;
        seen.add(name);
        wait(next);
        max = Math.max(max, next.length);
      }
    }
    return false;
  }

  /** Characters that may come next: one of each range of them, of many those that most places begin with. */
  #codes(state: MachineState): readonly number[] {
    const counts = new Map<number, number>();
    for (const place of state) {
      if (place === null) continue;
      const ranges = this.grammar.classes[~(place.sequence[place.index] as Term)] ?? [];
      for (let i = 0; i < Math.min(ranges.length, 2 * TRIED_AHEAD); i += 2) {
        const code = ranges[i] as number;
        counts.set(code, (counts.get(code) ?? 0) + 1);
      }
    }
    if (counts.size <= TRIED_AHEAD) return [...counts.keys()];
    return [...counts]
      .sort(([, a], [, b]) => b - a)
      .slice(0, TRIED_AHEAD)
      .map(([code]) => code);
  }

  /** UTF-8 bytes that {@link rest} has. */
  cost(state: MachineState): number {
    return cheapest(state)?.cost ?? 0;
  }

  /** Places on the deepest way to the end, which grows with the nesting of the text. */
  depth(state: MachineState): number {
    return cheapest(state)?.depth ?? 0;
  }

  /** The shortest text that ends what was begun. */
  rest(state: MachineState): string {
    let text = '';
    for (let place = cheapest(state); place !== null; place = place.after) {
      text += this.#spell(place.sequence.slice(place.index));
    }
    return text;
  }

  #spell(sequence: Sequence): string {
    let text = '';
    const waiting = [...sequence].reverse();
    for (let term = waiting.pop(); term !== undefined; term = waiting.pop()) {
      if (term < 0) text += String.fromCodePoint(plainest(this.grammar.classes[~term] ?? []));
      else waiting.push(...[...(this.#shortest[term] ?? [])].reverse());
    }
    return text;
  }

  /** Goes down to the characters that may come next; `within`: rules that it went through. */
  #enter(sequence: Sequence, index: number, after: Place | null, into: (Place | null)[], within = 0): void {
    if (within > MAX_RULES_WITHIN) throw new GrammarTooLarge();
    const term = sequence[index];
    if (term === undefined) {
      if (after !== null) this.#enter(after.sequence, after.index, after.after, into, within + 1);
      else add(null, into);
      return;
    }
    if (term < 0) {
      add(this.#place(sequence, index, after), into);
      return;
    }
    const follows = index + 1 === sequence.length ? after : this.#place(sequence, index + 1, after);
    for (const alternative of this.grammar.rules[term] ?? []) this.#enter(alternative, 0, follows, into, within + 1);
  }

  #place(sequence: Sequence, index: number, after: Place | null): Place {
    const known = after === null ? this.#first : after.before;
    let places = known.get(sequence);
    if (places === undefined) {
      places = new Map();
      known.set(sequence, places);
    }
    let place = places.get(index);
    if (place === undefined) {
      const cost = this.#restCost(sequence, index) + (after?.cost ?? 0);
      place = { id: this.#places++, sequence, index, after, cost, depth: (after?.depth ?? 0) + 1, before: new Map() };
      places.set(index, place);
    }
    return place;
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
    return sequenceCost(sequence, this.#costs, this.#classCosts);
  }
}

/** Throws {@link GrammarTooLarge} when there are too many. */
function add(place: Place | null, into: (Place | null)[]): void {
  if (into.includes(place)) return;
  if (into.length === MAX_PLACES) throw new GrammarTooLarge();
  into.push(place);
}

/** The same for states that are the same. */
export function nameOf(state: MachineState): string {
  return state.map((place) => place?.id ?? '').join();
}

/** Null when the text may end as it is. */
function cheapest(state: MachineState): Place | null {
  let best: Place | null = null;
  for (const place of state) {
    if (place === null) return null;
    if (best === null || place.cost < best.cost) best = place;
  }
  return best;
}
