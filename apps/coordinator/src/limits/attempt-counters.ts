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

/**
 * Counts an attempt in all counters, or in none: a refusal, or an error of a counter, refunds the earlier counts.
 *
 * @returns Seconds to wait, of the first counter that refuses; null: admitted.
 */
export async function countInAll(limits: readonly (readonly [counter: AttemptCounter, name: string])[]): Promise<number | null> {
  const counted: (readonly [AttemptCounter, string])[] = [];
  const refund = async (): Promise<void> => void (await Promise.all(counted.map(([counter, name]) => counter.refund(name))));
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
      return retryAfter;
    }
    counted.push([counter, name]);
  }
  return null;
}
