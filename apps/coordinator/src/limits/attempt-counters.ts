/**
 * Interfaces of counters that limit attempts at passwords, codes and keys, and sent mails. Implemented in the memory of this process,
 * and in the database shared by all coordinators.
 */
export interface AttemptCounter {
  /**
   * Counts an attempt from its start, so that concurrent attempts cannot exceed the limit. Null: the attempt is admitted.
   *
   * Otherwise the seconds to wait: the attempt must be refused, also if the promise rejects.
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
