/** Number formats of the simulator's tables. */

/** Percentage of a share from 0 to 1, without the percent sign. */
export function percent(share: number): string {
  return (100 * share).toFixed(share < 0.1 ? 2 : 1);
}

/** Seconds from milliseconds, without the unit. */
export function seconds(ms: number): string {
  return (ms / 1000).toFixed(ms < 10_000 ? 2 : 1);
}
