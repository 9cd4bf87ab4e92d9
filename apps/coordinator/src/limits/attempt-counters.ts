/**
 * Interfaces of counters that limit guesses at passwords, codes and keys, and the number of e-mails.
 *
 * Counted in memory, or in the database if several coordinators share it.
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
