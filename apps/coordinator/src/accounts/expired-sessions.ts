/** Deletes expired sessions and mail links every hour. Also revokes single sessions and password-reset links. */
import { runOncePerPeriod } from '../database/periodic-work.js';
import type { Database } from '../database/tables.js';
import { RepeatedTask } from '../repeated-task.js';
import type { Auth } from './auth.js';

const EVERY_MS = 3_600_000;
const MODELS = ['session', 'verification'] as const;

/**
 * Deletes expired rows now and every hour. Returns a function that stops the job.
 *
 * With a `database`, the coordinators of the cluster that shares it run the job once an hour together.
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

/** Revokes a user's password-reset links, pending second steps and trusted browsers, because an attacker may have them. */
export async function revokeResetLinks(auth: Auth, userId: string): Promise<void> {
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
