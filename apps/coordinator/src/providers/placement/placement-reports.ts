/** What is told of placement: to owners, why their machines got what they got; to everybody, how much a model is asked for. */
import type { PlacementRequest, ProviderPool, SchedulingDecision } from '@inference/scheduler';
import type { LoggedDecision } from './decision-history.js';
import { type LoggedProvider, PlacementLog, type PlacementShare } from './placement-log.js';
import { RequestCounts } from './request-counts.js';

export class PlacementReports<S extends LoggedProvider> {
  readonly #book = new PlacementLog<S>();
  readonly #demand = new RequestCounts();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** A connection offers its models from now on, if it did not before. */
  follow(session: S): void {
    this.#book.follow(session);
  }

  /** A decision was made on the board of a model, for the moment `now`, in milliseconds. */
  decided(model: string, board: ProviderPool<S>, request: PlacementRequest, decision: SchedulingDecision<S>, now: number): void {
    this.#book.decided(model, board, request, decision, now);
  }

  /** What a connection was given of all that was placed since it came; with a model, of what was placed of that. */
  share(session: S, model: string | null): PlacementShare {
    return this.#book.share(session, model);
  }

  /** The last placement decisions that concerned a connection, the newest first. */
  decisions(session: S): readonly LoggedDecision[] {
    return this.#book.entries(session);
  }

  /** A request for a model came. */
  requestReceived(model: string): void {
    this.#demand.add(model, this.#now());
  }

  /** Requests for a model that came in the last five minutes. */
  recentRequests(model: string): number {
    return this.#demand.recent(model, this.#now());
  }
}
