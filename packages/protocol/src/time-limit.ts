/** `withTimeLimit` waits for a promise with a time limit. */

/** Value of the promise, or `'late'` after `ms`. The promise itself continues. Rejects with the promise. */
export async function withTimeLimit<Value>(promise: Promise<Value>, ms: number): Promise<Value | 'late'> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<'late'>((resolve) => {
    timer = setTimeout(() => resolve('late'), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
