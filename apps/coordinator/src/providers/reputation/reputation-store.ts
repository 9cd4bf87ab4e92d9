/**
 * `ReputationStore` holds the reputations of providers in memory, and optionally persists them.
 *
 * A provider id is a hash of the provider's enclave key, so a reconnect does not clear the reputation.
 */
import type { ProviderId } from '@inference/protocol';
import {
  afterAnswer,
  afterFault,
  afterSlowAnswer,
  CLEAN_REPUTATION,
  clampedToLimits,
  type Fault,
  isClean,
  nextChangeAt,
  type Reputation,
  type Restriction,
  stateAt,
} from './reputation.js';

export interface ReputationStoreOptions {
  readonly now: () => number;
  readonly random: () => number;
  /** Called when the reputation, or its effect on placement, may have changed, also by time alone. */
  readonly onChange: (providerId: ProviderId) => void;
  /** Maximum number of stored reputations. Default: {@link MAX_ENTRIES}. */
  readonly max?: number;
  /** Default: none, so reputations are lost when the process ends. */
  readonly persistence?: ReputationPersistence;
}

/** Storage that outlives the process. The coordinators of a cluster share it. */
export interface ReputationPersistence {
  /** Reputations that were stored before this process started, oldest first. */
  readonly stored: Iterable<readonly [ProviderId, Reputation]>;
  /** Stores a reputation, or deletes it if null. Returns before the write. */
  put(providerId: ProviderId, reputation: Reputation | null): void;
}

interface Entry {
  reputation: Reputation;
  timer: NodeJS.Timeout | null;
}

const MAX_ENTRIES = 50_000;
/** Maximum delay of a Node.js timer. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export class ReputationStore {
  readonly #options: ReputationStoreOptions;
  readonly #entries = new Map<ProviderId, Entry>();

  constructor(options: ReputationStoreOptions) {
    this.#options = options;
    for (const [id, reputation] of options.persistence?.stored ?? []) this.#store(id, clampedToLimits(reputation, options.now()));
  }

  get size(): number {
    return this.#entries.size;
  }

  get(providerId: ProviderId): Reputation {
    return this.#entries.get(providerId)?.reputation ?? CLEAN_REPUTATION;
  }

  /** Providers that are restricted or on probation. */
  *restricted(): Iterable<[ProviderId, Restriction]> {
    for (const [providerId, { reputation }] of this.#entries) {
      if (reputation.restriction !== null) yield [providerId, reputation.restriction];
    }
  }

  /** Records a job that failed by the provider's fault. Returns the new restriction, or null. */
  faulted(providerId: ProviderId, fault: Fault, detail: string): Restriction | null {
    const before = this.get(providerId);
    const after = afterFault(before, fault, detail, this.#options.now(), this.#options.random());
    this.#put(providerId, after);
    return after.restriction === before.restriction ? null : after.restriction;
  }

  /** Records a verified answer. A provider without an entry is clean already. */
  answered(providerId: ProviderId): void {
    if (this.#entries.has(providerId)) this.#put(providerId, afterAnswer(this.get(providerId), this.#options.now()));
  }

  answeredSlowly(providerId: ProviderId): void {
    this.#put(providerId, afterSlowAnswer(this.get(providerId), this.#options.now()));
  }

  clear(providerId: ProviderId): boolean {
    if (stateAt(this.get(providerId), this.#options.now()) === 'well') return false;
    this.#deleteFromMemory(providerId);
    // Not deleted: other coordinators clear the reputation when they read a clean one.
    this.#options.persistence?.put(providerId, { ...CLEAN_REPUTATION, at: this.#options.now() });
    this.#options.onChange(providerId);
    return true;
  }

  /** Takes over a reputation that another coordinator wrote. */
  adopt(providerId: ProviderId, stored: Reputation): void {
    const now = this.#options.now();
    const reputation = clampedToLimits(stored, now);
    // Without effect, as after `clear`. The row stays in the shared storage for the other coordinators.
    if (isClean(reputation, now)) this.#deleteFromMemory(providerId);
    else this.#store(providerId, reputation);
    this.#options.onChange(providerId);
  }

  close(): void {
    for (const providerId of [...this.#entries.keys()]) this.#deleteFromMemory(providerId);
  }

  #put(providerId: ProviderId, reputation: Reputation): void {
    if (this.#store(providerId, reputation)) this.#options.persistence?.put(providerId, reputation);
    this.#options.onChange(providerId);
  }

  /** Returns false if the reputation was deleted instead, because it has no effect any more or was evicted. */
  #store(providerId: ProviderId, reputation: Reputation): boolean {
    const now = this.#options.now();
    if (isClean(reputation, now)) {
      this.#delete(providerId);
      return false;
    }
    this.#deleteFromMemory(providerId);
    // Reinserted at the end, so that the least recently changed entry is evicted first.
    this.#entries.set(providerId, { reputation, timer: this.#timerFor(providerId, reputation, now) });
    if (this.#entries.size > (this.#options.max ?? MAX_ENTRIES)) this.#delete(this.#evictionCandidate());
    // If all others are restricted, the new entry itself was evicted.
    return this.#entries.has(providerId);
  }

  #timerFor(providerId: ProviderId, reputation: Reputation, now: number): NodeJS.Timeout | null {
    const at = nextChangeAt(reputation, now);
    if (at === null) return null;
    // One millisecond more, because a timer may fire slightly early.
    const timer = setTimeout(() => this.#recheck(providerId), Math.min(at - now + 1, MAX_TIMER_MS));
    timer.unref();
    return timer;
  }

  #recheck(providerId: ProviderId): void {
    const entry = this.#entries.get(providerId);
    if (entry === undefined) return;
    const now = this.#options.now();
    if (isClean(entry.reputation, now)) this.#delete(providerId);
    else entry.timer = this.#timerFor(providerId, entry.reputation, now);
    this.#options.onChange(providerId);
  }

  /** Returns the provider whose reputation changed least recently, preferably one that is neither restricted nor on probation. */
  #evictionCandidate(): ProviderId {
    let oldest: ProviderId | null = null;
    for (const [providerId, { reputation }] of this.#entries) {
      if (reputation.restriction === null) return providerId;
      oldest ??= providerId;
    }
    return oldest as ProviderId;
  }

  /** Deletes a reputation here and in the shared storage, because it has no effect any more or is evicted. */
  #delete(providerId: ProviderId): void {
    this.#deleteFromMemory(providerId);
    this.#options.persistence?.put(providerId, null);
  }

  #deleteFromMemory(providerId: ProviderId): void {
    const entry = this.#entries.get(providerId);
    if (entry === undefined) return;
    if (entry.timer !== null) clearTimeout(entry.timer);
    this.#entries.delete(providerId);
  }
}
