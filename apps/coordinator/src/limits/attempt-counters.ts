/**
 * Counters of attempts that must be few: guesses of passwords, codes and keys, and mails. In the memory of this process, or in the
 * database of all coordinators.
 */
export interface AttemptCounter {
  /**
   * Counts an attempt from its start, so a thousand concurrent attempts equal a thousand sequential attempts. The seconds to wait if
   * there were too many; the attempt must then be refused. A rejection: refuse, too.
   */
  count(name: string): number | null | Promise<number | null>;
  /** Uncounts an attempt that was right. Never rejects. */
  refund(name: string): void | Promise<void>;
}

/** Names with a recent success. */
export interface RecentNames {
  has(name: string): boolean | Promise<boolean>;
  /** Never rejects. */
  add(name: string): void | Promise<void>;
}

export interface AttemptCounters {
  /** `limit`: unique name of the limit. */
  counter(limit: string, options: { readonly maxAttempts: number; readonly windowMs: number }): AttemptCounter;
  recentNames(list: string, options: { readonly lifetimeMs: number }): RecentNames;
}
