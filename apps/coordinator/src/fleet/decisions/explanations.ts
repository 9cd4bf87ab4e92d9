/** What is told of placement: to owners, why their machines got what they got; to everybody, how much a model is asked for. */
import type { Board } from '../scheduler/board.js';
import type { Decision, PlacementRequest } from '../scheduler/schedule.js';
import { DecisionBook, type Given, type Watched } from './decision-book.js';
import type { DecisionEntry } from './decision-history.js';
import { Demand } from './demand.js';

export class Explanations<S extends Watched> {
  readonly #book = new DecisionBook<S>();
  readonly #demand = new Demand();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** A connection offers its models from now on, if it did not before. */
  follow(session: S): void {
    this.#book.follow(session);
  }

  /** A decision was made on the board of a model, for the moment `now`, in milliseconds. */
  decided(model: string, board: Board<S>, request: PlacementRequest, decision: Decision<S>, now: number): void {
    this.#book.decided(model, board, request, decision, now);
  }

  /** What a connection was given of all that was placed since it came; with a model, of what was placed of that. */
  given(session: S, model: string | null): Given {
    return this.#book.given(session, model);
  }

  /** The last placement decisions that concerned a connection, the newest first. */
  decisions(session: S): readonly DecisionEntry[] {
    return this.#book.entries(session);
  }

  /** A request for a model came. */
  asked(model: string): void {
    this.#demand.asked(model, this.#now());
  }

  /** Requests for a model that came in the last five minutes. */
  askedLately(model: string): number {
    return this.#demand.lately(model, this.#now());
  }
}
