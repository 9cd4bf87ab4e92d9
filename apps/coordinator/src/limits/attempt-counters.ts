/**
 * Interfaces of counters that limit guesses at passwords, codes and keys, and the number of e-mails.
 *
 * In a cluster, the counts are in the database. Otherwise they are in memory.
 */
export interface AttemptCounter {
  /**
   * Counts an attempt. Call at its start: otherwise concurrent attempts could exceed the limit. If the promise rejects, refuse the attempt.
   *
   * @returns Seconds to wait; null: admitted.
   */
  count(name: string): number | null | Promise<number | null>;
  /** Removes the count of a successful attempt. Never rejects. */
  refund(name: string): void | Promise<void>;
}

/** Names with a recent success. */
export interface RecentNames {
  has(name: string): boolean | Promise<boolean>;
  /** Records a success. Never rejects. */
  add(name: string): void | Promise<void>;
}

export interface AttemptCounters {
  /** `limit`: unique name of the limit. */
  counter(limit: string, options: { readonly maxAttempts: number; readonly windowMs: number }): AttemptCounter;
  recentNames(list: string, options: { readonly lifetimeMs: number }): RecentNames;
}

/** An attempt within all limits. */
export interface CountedAttempt {
  readonly isAdmitted: true;
  /** Removes the counts of the attempt. Further calls do nothing. Never rejects. */
  refund(): Promise<void>;
}

/** An attempt that a limit refuses, and that no counter counts. */
export interface RefusedAttempt {
  readonly isAdmitted: false;
  /** The first counter that refused the attempt. */
  readonly refusedBy: AttemptCounter;
  /** Seconds. */
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
