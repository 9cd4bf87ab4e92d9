/**
 * How the coordinator takes leave of its providers: those without jobs are told to connect again, but for some that running jobs may
 * still need, and the others when they have none left.
 */

import { type DrainDemand, type PoolMember, providersToRetain } from '@inference/scheduler';
import type { ProviderSession } from './provider-session.js';

export interface ShutdownDependencies {
  /** Every open connection, registered or not. */
  readonly connected: Iterable<ProviderSession>;
  readonly membersOf: (model: string) => Iterable<PoolMember<ProviderSession>>;
  readonly now: () => number;
}

/** Between a provider's last job and its dismissal, in milliseconds: that job may have failed, and be placed again in a moment. */
const CLOSE_IDLE_AFTER_MS = 50;
/** Between two looks at those that stayed, in milliseconds: their jobs may be settled, or begun to be delivered, by now. */
const RECHECK_MS = 200;

export class GracefulShutdown {
  readonly #deps: ShutdownDependencies;
  readonly #demands: () => Iterable<DrainDemand>;
  #timer: NodeJS.Timeout | null = null;

  /** It begins. `demands`: what jobs that run may still need; asked again whenever a provider has become idle. */
  constructor(demands: () => Iterable<DrainDemand>, deps: ShutdownDependencies) {
    this.#demands = demands;
    this.#deps = deps;
    this.#closeIdle();
  }

  /** Something of a provider changed. It may have become idle. */
  changed(session: ProviderSession): void {
    if (session.jobs.used === 0) this.#timer ??= setTimeout(() => this.#closeIdle(), CLOSE_IDLE_AFTER_MS);
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
    for (const session of [...connected]) if (session.jobs.used === 0 && !retained.has(session)) rejectShuttingDown(session);
  }
}

export function rejectShuttingDown(session: ProviderSession): void {
  session.reject('shutting_down', 'the coordinator is shutting down');
}
