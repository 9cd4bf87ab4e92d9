/** A wait with a deadline, for promises that cannot be cancelled. */

/** The value, or `'late'` when it did not come within `ms`. The promise goes on; a later rejection of it is not lost to its other listeners. */
export async function within<Value>(promise: Promise<Value>, ms: number): Promise<Value | 'late'> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<'late'>((resolve) => {
    timer = setTimeout(() => resolve('late'), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
