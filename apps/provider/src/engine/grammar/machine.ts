/**
 * Follows a text through a grammar, character by character, and knows at every place the shortest text that would end it.
 * It reads the same rules as llama.cpp in the same way (a set of stacks), so the two always agree.
 */
import { bytesOf, type Grammar, inRanges, leastCosts, plainest, type Sequence, sequenceCost, type Term } from './grammar.js';

/** A place in a sequence, with what follows after the sequence's end. */
interface Place {
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

  constructor(private readonly grammar: Grammar) {
    const { classes, rules } = grammar;
    this.#classCosts = classes.map((ranges) => bytesOf(plainest(ranges)));
    const costs = leastCosts(classes, rules);
    this.#costs = costs;
    this.#shortest = rules.map((alternatives, rule) => alternatives.find((each) => this.#sum(each) === costs[rule]));
  }

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

  /** Goes down to the characters that may come next; recursion is as deep as rules that begin with rules. */
  #enter(sequence: Sequence, index: number, after: Place | null, into: (Place | null)[]): void {
    const term = sequence[index];
    if (term === undefined) {
      if (after !== null) this.#enter(after.sequence, after.index, after.after, into);
      else if (!into.includes(null)) into.push(null);
      return;
    }
    if (term < 0) {
      const place = this.#place(sequence, index, after);
      if (!into.includes(place)) into.push(place);
      return;
    }
    const follows = index + 1 === sequence.length ? after : this.#place(sequence, index + 1, after);
    for (const alternative of this.grammar.rules[term] ?? []) this.#enter(alternative, 0, follows, into);
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
      const cost = this.#sum(sequence.slice(index)) + (after?.cost ?? 0);
      place = { sequence, index, after, cost, depth: (after?.depth ?? 0) + 1, before: new Map() };
      places.set(index, place);
    }
    return place;
  }

  #sum(sequence: Sequence): number {
    return sequenceCost(sequence, this.#costs, this.#classCosts);
  }
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
