/**
 * Deletes expired sessions and verifications every hour. Also revokes single sessions and a user's verifications.
 *
 * `verification` is a table of better-auth, the sign-in library: links in e-mails, pending second steps and trusted browsers.
 */
import { runOncePerPeriod } from '../database/periodic-work.js';
import type { Database } from '../database/tables.js';
import { RepeatedTask } from '../repeated-task.js';
import type { Auth } from './auth.js';

const EVERY_MS = 3_600_000;
const MODELS = ['session', 'verification'] as const;

/**
 * Deletes expired rows now and every hour. Returns a function that stops the job.
 *
 * `database`: set in a cluster, whose coordinators together run the job once an hour.
 */
export function startSessionCleanup(auth: Auth, database: Database | null, onError: (error: unknown) => void): () => Promise<void> {
  const deleteNow = (): Promise<void> => deleteExpired(auth, new Date());
  const prune = database === null ? deleteNow : () => runOncePerPeriod(database, 'prune sessions', EVERY_MS, deleteNow);
  const pruning = new RepeatedTask(EVERY_MS, prune, onError);
  void pruning.run();
  return () => pruning.stop();
}

export async function deleteExpired(auth: Auth, before: Date): Promise<void> {
  const { adapter } = await auth.$context;
  for (const model of MODELS) await adapter.deleteMany({ model, where: [{ field: 'expiresAt', operator: 'lt', value: before }] });
}

/** Revokes a user's password-reset links, pending second steps and trusted browsers, which an attacker may have. */
export async function deleteVerifications(auth: Auth, userId: string): Promise<void> {
  const { adapter } = await auth.$context;
  await adapter.deleteMany({ model: 'verification', where: [{ field: 'value', value: userId }] });
}

export async function revokeSession(auth: Auth, userId: string, sessionId: string): Promise<void> {
  const { adapter } = await auth.$context;
  const where = [
    { field: 'id', value: sessionId },
    { field: 'userId', value: userId },
  ];
  await adapter.deleteMany({ model: 'session', where });
}
