/** Ends a wait with the caller's abort signal, without ending the work, which other requests may share. */

/** Settles like `work`, or rejects with the signal's reason as soon as the signal aborts. */
export async function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  // The race handles a rejection, except after an abort before the race.
  work.catch(() => {});
  signal.throwIfAborted();
  let onAbort = (): void => {};
  const aborted = new Promise<never>((_resolve, reject) => {
    onAbort = () => reject(signal.reason as Error);
    signal.addEventListener('abort', onAbort, { once: true });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
