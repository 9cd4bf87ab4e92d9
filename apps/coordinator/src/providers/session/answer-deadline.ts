/** `withinDeadline`: limits the wait for a service whose database may never answer, so that a session's later requests are not blocked. */
import { withTimeLimit } from '@inference/protocol';

/** Above the timeouts of a connection (10 s) and of a statement (30 s), which do not cover a lost network path. */
export const MAX_ANSWER_MS = 40_000;

/** Rejects after {@link MAX_ANSWER_MS}. A later result is ignored. */
export async function withinDeadline<T extends object>(answer: Promise<T>): Promise<T> {
  const result = await withTimeLimit<T>(answer, MAX_ANSWER_MS);
  if (result === 'late') throw new Error('there was no answer in time');
  return result;
}
