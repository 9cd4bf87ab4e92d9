/** Keeps tests that depend on the current UTC day away from midnight. */

const DAY_MS = 86_400_000;

/** Resolves at once, or after the coming midnight if less than `ms` is left of the day. */
export async function untilDayLasts(ms = 30_000): Promise<void> {
  const leftMs = DAY_MS - (Date.now() % DAY_MS);
  if (leftMs <= ms) await new Promise((resolve) => setTimeout(resolve, leftMs + 1));
}
