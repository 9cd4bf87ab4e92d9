/** `TimeSpan`: bounds of the times of rows, in milliseconds since 1970. */
export interface TimeSpan {
  /** Included; null: no bound. */
  readonly from: number | null;
  /** Excluded; null: no bound. */
  readonly to: number | null;
}
