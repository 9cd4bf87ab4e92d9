/** Number formats of the simulator's tables. */
export function percent(share: number): string {
  return (100 * share).toFixed(share < 0.1 ? 2 : 1);
}

export function seconds(ms: number): string {
  return (ms / 1000).toFixed(ms < 10_000 ? 2 : 1);
}
