/**
 * Chooses on the boards, which may be behind the clock: members that it has overtaken are looked at again before the choice is
 * made. Whatever the clock does and whoever is still listed, that ends after a few rounds, because one choice that never
 * ended would stop the whole process.
 */
import type { ModelBoards, Offering } from './model-boards.js';
import type { Board, Member } from './scheduler/board.js';
import { isNamed, type ProviderFacts } from './scheduler/gates.js';
import { withProbe } from './scheduler/probing.js';
import { type Decision, type PlacementRequest, schedule } from './scheduler/schedule.js';

/** A job for a machine, as far as it says which. */
export interface PlacementDemand extends PlacementRequest {
  /** Nothing of the answer is delivered before it is verified. */
  readonly revocable?: boolean;
}

export interface PlacementSurroundings<S extends Offering> {
  readonly boards: ModelBoards<S>;
  /** Milliseconds. It may be set back at any moment. */
  readonly now: () => number;
  /** Numbers in [0, 1). */
  readonly random: () => number;
  /** How a subject stands at `now`; null: it is no longer the one that stands for its provider. */
  readonly facts: (subject: S, now: number) => ProviderFacts | null;
  /** On trial after a lie. */
  readonly isDistrusted: (facts: ProviderFacts) => boolean;
}

export interface Placed<S> {
  readonly decision: Decision<S>;
  /** What it was made from; null when nobody has the model. */
  readonly board: Board<S> | null;
  /** The moment for which it was made, in milliseconds. */
  readonly now: number;
}

/**
 * Rounds in which overtaken members are looked at again. Each brings them to the moment of the choice, so that a second one is
 * needed only where the clock was set in between.
 */
export const MAX_ROUNDS = 3;

export class Placement<S extends Offering> {
  readonly #with: PlacementSurroundings<S>;

  constructor(surroundings: PlacementSurroundings<S>) {
    this.#with = surroundings;
  }

  choose(model: string, demand: PlacementDemand): Placed<S> {
    const { boards, random, isDistrusted } = this.#with;
    for (let round = 0; ; round++) {
      const now = this.#with.now();
      const board = boards.boardAt(model, now);
      if (board === undefined) {
        const reason = isNamed(demand) ? 'no_such_serial' : 'none_routable';
        return { decision: { kind: 'none', reason, lapsed: [] }, board: null, now };
      }
      const scheduled = schedule(board, demand, now, random);
      if (scheduled.kind === 'placed' || scheduled.lapsed.length === 0 || round === MAX_ROUNDS) {
        const rules = { now, random, isDistrusted: ({ facts }: Member<S>) => isDistrusted(facts) };
        return { decision: withProbe(board, demand, scheduled, rules), board, now };
      }
      // The clock was ahead of the timers. Some of them may be as good as before, after a look at their evidence.
      for (const { subject } of scheduled.lapsed) this.#lookAgain(subject, now);
    }
  }

  #lookAgain(subject: S, now: number): void {
    const { boards, facts } = this.#with;
    const fresh = facts(subject, now);
    if (fresh === null) boards.strike(subject);
    else boards.update(subject, fresh, now);
  }
}
