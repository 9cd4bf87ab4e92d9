/** `TimeSpan`: time filter of lists, in milliseconds since 1970. */
export interface TimeSpan {
  /** Included; null: no bound. */
  readonly from: number | null;
  /** Excluded; null: no bound. */
  readonly to: number | null;
}
