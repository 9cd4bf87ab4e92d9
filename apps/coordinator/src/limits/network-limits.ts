/** Interfaces of limits that all coordinators of the network count together, such as requests per API key and minute. */

export interface Permit {
  readonly isAdmitted: boolean;
  /** Permits left in the window, as far as this coordinator knows. */
  readonly remaining: number;
  /** Milliseconds to the end of the window. */
  readonly resetMs: number;
}

export interface NetworkLimit {
  /** Takes permits from a key's window. Synchronous while this coordinator has permits left. Never rejects. */
  take(key: string, amount?: number): Permit | Promise<Permit>;
}

export interface NetworkLimits {
  /** `name`: unique, and the same at all coordinators. */
  define(name: string, options: { readonly max: number; readonly windowMs: number }): NetworkLimit;
}
