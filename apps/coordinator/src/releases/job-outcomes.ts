/** `JobOutcomes`: attempts of each provider, and failures by the provider's fault, since the last {@link JobOutcomes.take}. */

/** Bound of the map; no coordinator has so many connections. */
const MAX_PROVIDERS = 50_000;

export interface OutcomeCount {
  readonly attempts: number;
  readonly failures: number;
}

export class JobOutcomes {
  #counts = new Map<string, { attempts: number; failures: number }>();

  record(providerId: string, hasFailed: boolean): void {
    const count = this.#counts.get(providerId);
    if (count !== undefined) {
      count.attempts++;
      if (hasFailed) count.failures++;
    } else if (this.#counts.size < MAX_PROVIDERS) {
      this.#counts.set(providerId, { attempts: 1, failures: hasFailed ? 1 : 0 });
    }
  }

  /** Returns the counts and resets them to zero. */
  take(): ReadonlyMap<string, OutcomeCount> {
    const counts = this.#counts;
    this.#counts = new Map();
    return counts;
  }
}
