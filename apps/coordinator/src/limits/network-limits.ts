/** Interfaces of limits that all coordinators of a cluster count together, such as requests per API key and minute. */

/** Result of a request for permits. A permit is the right to count 1, such as one request. */
export interface Permit {
  readonly isAdmitted: boolean;
  /** Permits left in the window, as far as this coordinator knows. */
  readonly remaining: number;
  /** Milliseconds to the end of the window. */
  readonly resetMs: number;
}

export interface NetworkLimit {
  /**
   * Takes permits (by default 1) from the window of a key, such as an API key's id. Never rejects.
   *
   * Synchronous while this coordinator has permits left.
   */
  take(key: string, amount?: number): Permit | Promise<Permit>;
}

export interface NetworkLimits {
  /** `name`: unique, and the same at all coordinators. */
  define(name: string, options: { readonly max: number; readonly windowMs: number }): NetworkLimit;
}
