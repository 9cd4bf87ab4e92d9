/** `JobOutcomes`: attempts of each provider and failures by its fault, since the last {@link JobOutcomes.take}. */

/** Maximum entries. Outcomes of further providers are not counted. */
const MAX_PROVIDERS = 50_000;

export interface OutcomeCount {
  readonly attempts: number;
  readonly failures: number;
}

export interface OutcomeCounts {
  /** Start of the counted period, in milliseconds since 1970. */
  readonly since: number;
  readonly byProvider: ReadonlyMap<string, OutcomeCount>;
}

export class JobOutcomes {
  #counts = new Map<string, { attempts: number; failures: number }>();

  record(providerId: string, hasFailed: boolean): void {
    this.#add(providerId, { attempts: 1, failures: hasFailed ? 1 : 0 });
  }

  /** Returns the counts, and resets them to zero. */
  take(): ReadonlyMap<string, OutcomeCount> {
    const counts = this.#counts;
    this.#counts = new Map();
    return counts;
  }

  /** Adds taken counts that could not be stored, so that the next {@link take} returns them too. */
  putBack(counts: ReadonlyMap<string, OutcomeCount>): void {
    for (const [providerId, count] of counts) this.#add(providerId, count);
  }

  #add(providerId: string, { attempts, failures }: OutcomeCount): void {
    const count = this.#counts.get(providerId);
    if (count !== undefined) {
      count.attempts += attempts;
      count.failures += failures;
    } else if (this.#counts.size < MAX_PROVIDERS) {
      this.#counts.set(providerId, { attempts, failures });
    }
  }
}
