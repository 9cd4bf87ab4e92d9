/** `withinDeadline`: limits a session's wait for a service, whose database may never answer. Later requests must not be blocked. */

/** Above the timeouts of a connection (10 s) and of a statement (30 s), which do not cover a lost network path. */
export const MAX_ANSWER_MS = 40_000;

/** Rejects after {@link MAX_ANSWER_MS}. A later result is ignored. */
export async function withinDeadline<T>(answer: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error('there was no answer in time')), MAX_ANSWER_MS);
    timer.unref();
  });
  try {
    return await Promise.race([answer, tooLate]);
  } finally {
    clearTimeout(timer);
  }
}
