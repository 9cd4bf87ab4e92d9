/**
 * How the coordinator takes leave of its providers: those without jobs are told to connect again, but for some that running jobs may
 * still need, and the others when they have none left.
 */
import type { ProviderSession } from './provider-session.js';
import type { Member } from './scheduler/board.js';
import { sparesFor, type Wanted } from './spares.js';

export interface FarewellSurroundings {
  /** Every open connection, registered or not. */
  readonly connected: Iterable<ProviderSession>;
  readonly membersOf: (model: string) => Iterable<Member<ProviderSession>>;
  readonly now: () => number;
}

/** Between a provider's last job and its dismissal, in milliseconds: that job may have failed, and be placed again in a moment. */
const DISMISS_AFTER_MS = 50;
/** Between two looks at those that stayed, in milliseconds: their jobs may be settled, or begun to be delivered, by now. */
const LOOK_AGAIN_MS = 200;

export class Farewell {
  readonly #with: FarewellSurroundings;
  readonly #wanted: () => Iterable<Wanted>;
  #timer: NodeJS.Timeout | null = null;

  /** It begins. `wanted`: what jobs that run may still need; asked again whenever a provider has become idle. */
  constructor(wanted: () => Iterable<Wanted>, surroundings: FarewellSurroundings) {
    this.#wanted = wanted;
    this.#with = surroundings;
    this.#dismissIdle();
  }

  /** Something of a provider changed. It may have become idle. */
  changed(session: ProviderSession): void {
    if (session.jobs.used === 0) this.#timer ??= setTimeout(() => this.#dismissIdle(), DISMISS_AFTER_MS);
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #dismissIdle(): void {
    this.#timer = null;
    const { connected, membersOf, now } = this.#with;
    const kept = new Set<ProviderSession>();
    for (const wanted of this.#wanted()) {
      for (const { subject } of sparesFor(wanted, membersOf(wanted.model), now())) kept.add(subject);
    }
    if (kept.size > 0) this.#timer = setTimeout(() => this.#dismissIdle(), LOOK_AGAIN_MS);
    for (const session of [...connected]) if (session.jobs.used === 0 && !kept.has(session)) sayGoodbye(session);
  }
}

export function sayGoodbye(session: ProviderSession): void {
  session.reject('shutting_down', 'the coordinator is shutting down');
}
