/**
 * The reputation of every enclave key that has one, in memory. It outlives connections, so that nobody clears theirs by coming
 * back; it is bounded, and what time has cleared is dropped.
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
} from './reputation.js';

export interface ReputationBookOptions {
  readonly now: () => number;
  readonly random: () => number;
  /** What placement goes by may have changed. */
  readonly onChange: (providerId: ProviderId) => void;
  readonly most?: number;
}

interface Entry {
  reputation: Reputation;
  timer: NodeJS.Timeout | null;
}

const MOST_REMEMBERED = 50_000;
/** Longest wait of a timer, in milliseconds. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export class ReputationBook {
  readonly #options: ReputationBookOptions;
  readonly #entries = new Map<ProviderId, Entry>();

  constructor(options: ReputationBookOptions) {
    this.#options = options;
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
    this.#options.onChange(providerId);
    return true;
  }

  close(): void {
    for (const providerId of [...this.#entries.keys()]) this.#drop(providerId);
  }

  #put(providerId: ProviderId, reputation: Reputation): void {
    this.#drop(providerId);
    const now = this.#options.now();
    if (!isClean(reputation, now)) {
      // The newest stands last, so that the first to go is the oldest.
      this.#entries.set(providerId, { reputation, timer: this.#timerFor(providerId, reputation, now) });
      if (this.#entries.size > (this.#options.most ?? MOST_REMEMBERED)) this.#drop(this.#leastMissed());
    }
    this.#options.onChange(providerId);
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
    if (isClean(entry.reputation, now)) this.#drop(providerId);
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

  #drop(providerId: ProviderId): void {
    const entry = this.#entries.get(providerId);
    if (entry === undefined) return;
    if (entry.timer !== null) clearTimeout(entry.timer);
    this.#entries.delete(providerId);
  }
}
