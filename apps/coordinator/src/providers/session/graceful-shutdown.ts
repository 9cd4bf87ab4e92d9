/**
 * `GracefulShutdown` moves providers to other coordinators before this one stops.
 *
 * Idle providers are asked to reconnect at once, except those that running jobs may need for a retry. Busy ones follow once they are idle.
 */

import { type DrainDemand, type PoolMember, providersToRetain } from '@inference/scheduler';
import type { ProviderSession } from './provider-session.js';

interface ShutdownDependencies {
  /** All open connections, registered or not. */
  readonly connected: Iterable<ProviderSession>;
  readonly membersOf: (model: string) => Iterable<PoolMember<ProviderSession>>;
  readonly now: () => number;
}

/** Delay from a provider's last job to the end of its session. A retry may use the provider meanwhile. */
const CLOSE_IDLE_AFTER_MS = 50;
/** Interval of checks whether retained providers are still needed. */
const RECHECK_MS = 200;

export class GracefulShutdown {
  readonly #deps: ShutdownDependencies;
  readonly #demands: () => Iterable<DrainDemand>;
  #timer: NodeJS.Timeout | null = null;

  /** Begins the shutdown. `demands` returns the placements that running jobs may still need; called repeatedly. */
  constructor(demands: () => Iterable<DrainDemand>, deps: ShutdownDependencies) {
    this.#demands = demands;
    this.#deps = deps;
    this.#closeIdle();
  }

  /** Handles a change of a provider, which may have become idle. */
  changed(session: ProviderSession): void {
    if (session.jobs.usedSlots === 0) this.#timer ??= setTimeout(() => this.#closeIdle(), CLOSE_IDLE_AFTER_MS);
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #closeIdle(): void {
    this.#timer = null;
    const { connected, membersOf, now } = this.#deps;
    const retained = new Set<ProviderSession>();
    for (const demand of this.#demands()) {
      for (const { subject } of providersToRetain(demand, membersOf(demand.model), now())) retained.add(subject);
    }
    if (retained.size > 0) this.#timer = setTimeout(() => this.#closeIdle(), RECHECK_MS);
    for (const session of [...connected]) if (session.jobs.usedSlots === 0 && !retained.has(session)) rejectShuttingDown(session);
  }
}

export function rejectShuttingDown(session: ProviderSession): void {
  session.reject('shutting_down', 'the coordinator is shutting down');
}
