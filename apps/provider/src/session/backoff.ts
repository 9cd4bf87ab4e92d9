/** How long to wait before the next try. Pure: chance comes in. */

export interface Backoff {
  readonly firstMs: number;
  readonly maxMs: number;
}

/** Milliseconds before try number `attempt` (from 0): doubled each time, the upper half of it at random. */
export function backoffMs({ firstMs, maxMs }: Backoff, attempt: number, random: number): number {
  const ceiling = Math.min(maxMs, firstMs * 2 ** Math.min(attempt, 30));
  return Math.round(ceiling * (0.5 + random / 2));
}
