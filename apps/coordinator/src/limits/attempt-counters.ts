/** Counters that limit attempts at passwords, codes and keys, and sent mails: in memory, or shared in the database. */
export interface AttemptCounter {
  /**
   * Counts an attempt at its start, because concurrent attempts could exceed the limit. A rejection refuses the attempt.
   *
   * @returns Seconds to wait; null: admitted.
   */
  count(name: string): number | null | Promise<number | null>;
  /** Takes back the count of a right attempt. Never rejects. */
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
