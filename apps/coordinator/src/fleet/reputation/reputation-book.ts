/**
 * The reputation of every enclave key that has one, in memory. It outlives connections, so that nobody clears theirs by coming
 * back, and with somebody who keeps it also the process; it is bounded, and what time has cleared is dropped.
 */
import type { ProviderId } from '@inference/protocol';
import {
  afterAnswer,
  afterFault,
  afterLateness,
  CLEAN,
  type Fault,
  isClean,
  nextChangeAt,
  type Reputation,
  type Restraint,
  stateAt,
  takenUp,
} from './reputation.js';

export interface ReputationBookOptions {
  readonly now: () => number;
  readonly random: () => number;
  /** What placement goes by may have changed. */
  readonly onChange: (providerId: ProviderId) => void;
  readonly max?: number;
  readonly keeper?: ReputationKeeper;
}

/** Keeps reputations over restarts. */
export interface ReputationKeeper {
  /** What was kept, the oldest first. */
  readonly known: Iterable<readonly [ProviderId, Reputation]>;
  /** Takes in what is new of a key, null when nothing of it counts any more. Returns at once. */
  put(providerId: ProviderId, reputation: Reputation | null): void;
}

interface Entry {
  reputation: Reputation;
  timer: NodeJS.Timeout | null;
}

const MAX_REMEMBERED = 50_000;
/** Longest wait of a timer, in milliseconds. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export class ReputationBook {
  readonly #options: ReputationBookOptions;
  readonly #entries = new Map<ProviderId, Entry>();

  constructor(options: ReputationBookOptions) {
    this.#options = options;
    for (const [providerId, kept] of options.keeper?.known ?? []) this.#enter(providerId, takenUp(kept, options.now()));
  }

  get size(): number {
    return this.#entries.size;
  }

  of(providerId: ProviderId): Reputation {
    return this.#entries.get(providerId)?.reputation ?? CLEAN;
  }

  /** Keys that are held back or on trial now. */
  *restrained(): Iterable<[ProviderId, Restraint]> {
    for (const [providerId, { reputation }] of this.#entries) {
      if (reputation.restraint !== null) yield [providerId, reputation.restraint];
    }
  }

  /** A job went wrong by the provider's fault. Gives the restraint that this led to, or null. */
  faulted(providerId: ProviderId, fault: Fault, detail: string): Restraint | null {
    const before = this.of(providerId);
    const after = afterFault(before, fault, detail, this.#options.now(), this.#options.random());
    this.#put(providerId, after);
    return after.restraint === before.restraint ? null : after.restraint;
  }

  answered(providerId: ProviderId): void {
    if (this.#entries.has(providerId)) this.#put(providerId, afterAnswer(this.of(providerId), this.#options.now()));
  }

  late(providerId: ProviderId): void {
    this.#put(providerId, afterLateness(this.of(providerId), this.#options.now()));
  }

  /** Forgets all of it. False when the key was not held back. */
  clear(providerId: ProviderId): boolean {
    if (stateAt(this.of(providerId), this.#options.now()) === 'well') return false;
    this.#drop(providerId);
    // In words, so that other coordinators hear of it.
    this.#options.keeper?.put(providerId, { ...CLEAN, at: this.#options.now() });
    this.#options.onChange(providerId);
    return true;
  }

  /** Takes in what another coordinator has come to know. */
  takeUp(providerId: ProviderId, kept: Reputation): void {
    this.#enter(providerId, takenUp(kept, this.#options.now()));
    this.#options.onChange(providerId);
  }

  close(): void {
    for (const providerId of [...this.#entries.keys()]) this.#drop(providerId);
  }

  #put(providerId: ProviderId, reputation: Reputation): void {
    if (this.#enter(providerId, reputation)) this.#options.keeper?.put(providerId, reputation);
    this.#options.onChange(providerId);
  }

  /** False: nothing of it counts, and the key has none. */
  #enter(providerId: ProviderId, reputation: Reputation): boolean {
    const now = this.#options.now();
    if (isClean(reputation, now)) {
      this.#forget(providerId);
      return false;
    }
    this.#drop(providerId);
    // The newest stands last, so that the first to go is the oldest.
    this.#entries.set(providerId, { reputation, timer: this.#timerFor(providerId, reputation, now) });
    if (this.#entries.size > (this.#options.max ?? MAX_REMEMBERED)) this.#forget(this.#leastMissed());
    return true;
  }

  #timerFor(providerId: ProviderId, reputation: Reputation, now: number): NodeJS.Timeout | null {
    const at = nextChangeAt(reputation, now);
    if (at === null) return null;
    const timer = setTimeout(() => this.#lookAgain(providerId), Math.min(Math.max(1, at - now + 1), LONGEST_TIMER_MS));
    timer.unref();
    return timer;
  }

  #lookAgain(providerId: ProviderId): void {
    const entry = this.#entries.get(providerId);
    if (entry === undefined) return;
    const now = this.#options.now();
    if (isClean(entry.reputation, now)) this.#forget(providerId);
    else entry.timer = this.#timerFor(providerId, entry.reputation, now);
    this.#options.onChange(providerId);
  }

  /** The oldest that is not held back, or the oldest of all. */
  #leastMissed(): ProviderId {
    let oldest: ProviderId | null = null;
    for (const [providerId, { reputation }] of this.#entries) {
      if (reputation.restraint === null) return providerId;
      oldest ??= providerId;
    }
    return oldest as ProviderId;
  }

  /** For good. */
  #forget(providerId: ProviderId): void {
    this.#drop(providerId);
    this.#options.keeper?.put(providerId, null);
  }

  #drop(providerId: ProviderId): void {
    const entry = this.#entries.get(providerId);
    if (entry === undefined) return;
    if (entry.timer !== null) clearTimeout(entry.timer);
    this.#entries.delete(providerId);
  }
}
