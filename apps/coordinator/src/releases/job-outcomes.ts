/** Requests of each provider since the last report: all, and those that failed by the provider's fault. */

/** More providers than a coordinator connects. */
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

  /** Returns the counts and begins new ones. */
  take(): ReadonlyMap<string, OutcomeCount> {
    const counts = this.#counts;
    this.#counts = new Map();
    return counts;
  }
}
