/** `ReputationStore` holds reputations in memory by enclave key, so that a reconnect clears nothing. Changes can also be persisted. */
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
  /** Called when the provider's placement facts may have changed. */
  readonly onChange: (providerId: ProviderId) => void;
  /** Maximum number of stored reputations. Default: {@link MAX_ENTRIES}. */
  readonly max?: number;
  /** Default: none. Reputations are then lost when the process ends. */
  readonly persistence?: ReputationPersistence;
}

/** Storage of reputations over restarts, shared by the coordinators of a cluster. */
export interface ReputationPersistence {
  /** Stored reputations, oldest first. */
  readonly stored: Iterable<readonly [ProviderId, Reputation]>;
  /** Stores a changed reputation; null deletes it. Returns immediately. */
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

  /** Enclave keys that are restricted or on probation. */
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

  answered(providerId: ProviderId): void {
    if (this.#entries.has(providerId)) this.#put(providerId, afterAnswer(this.get(providerId), this.#options.now()));
  }

  answeredSlowly(providerId: ProviderId): void {
    this.#put(providerId, afterSlowAnswer(this.get(providerId), this.#options.now()));
  }

  /** Clears a reputation. False: the key was not restricted. */
  clear(providerId: ProviderId): boolean {
    if (stateAt(this.get(providerId), this.#options.now()) === 'well') return false;
    this.#deleteFromMemory(providerId);
    // Stored explicitly, so that other coordinators clear the reputation too.
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

  /** False: the reputation has no effect any more, and was deleted. */
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

  /** The key without a restriction whose reputation changed least recently. If all have one, the least recently changed key. */
  #evictionCandidate(): ProviderId {
    let oldest: ProviderId | null = null;
    for (const [providerId, { reputation }] of this.#entries) {
      if (reputation.restriction === null) return providerId;
      oldest ??= providerId;
    }
    return oldest as ProviderId;
  }

  /** Deletes a reputation that has no effect any more. */
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
