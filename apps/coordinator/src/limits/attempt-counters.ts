/**
 * Interfaces of counters that limit attempts from outside: sign-ins, guesses at codes and keys, and requests for e-mails.
 *
 * Unrelated to the attempts of a job. `openAttemptCounters` chooses the implementation.
 */
export interface AttemptCounter {
  /**
   * Counts an attempt. Call at its start: otherwise concurrent attempts could exceed the limit. If the promise rejects, refuse the attempt.
   *
   * @param name Who or what makes the attempt, such as an account or a network address.
   * @returns Null if admitted, otherwise seconds to wait.
   */
  count(name: string): number | null | Promise<number | null>;
  /** Removes one counted attempt, because it succeeded or did not take place. Never rejects. */
  refund(name: string): void | Promise<void>;
}

/** Names that succeeded recently. */
export interface RecentNames {
  has(name: string): boolean | Promise<boolean>;
  /** Records a success. Never rejects. */
  add(name: string): void | Promise<void>;
}

export interface AttemptCounters {
  /** Counter of the limit with this unique name: at most `maxAttempts` per name and window. */
  counter(limit: string, options: { readonly maxAttempts: number; readonly windowMs: number }): AttemptCounter;
  recentNames(list: string, options: { readonly lifetimeMs: number }): RecentNames;
}

/** An attempt within all limits. */
export interface CountedAttempt {
  readonly isAdmitted: true;
  /** Removes the attempt from all counters. Further calls do nothing. Never rejects. */
  refund(): Promise<void>;
}

/** An attempt that a counter refused. No counter counts it. */
export interface RefusedAttempt {
  readonly isAdmitted: false;
  readonly refusedBy: AttemptCounter;
  /** Seconds to wait. */
  readonly retryAfter: number;
}

/** Counts an attempt in all counters, or in none: a refusal, or an error of a counter, refunds the earlier counts. */
export async function countInAll(
  limits: readonly (readonly [counter: AttemptCounter, name: string])[],
): Promise<CountedAttempt | RefusedAttempt> {
  const counted: (readonly [AttemptCounter, string])[] = [];
  const refund = async (): Promise<void> => {
    await Promise.all(counted.splice(0).map(([counter, name]) => counter.refund(name)));
  };
  for (const [counter, name] of limits) {
    let retryAfter: number | null;
    try {
      retryAfter = await counter.count(name);
    } catch (error) {
      await refund();
      throw error;
    }
    if (retryAfter !== null) {
      await refund();
      return { isAdmitted: false, refusedBy: counter, retryAfter };
    }
    counted.push([counter, name]);
  }
  return { isAdmitted: true, refund };
}
