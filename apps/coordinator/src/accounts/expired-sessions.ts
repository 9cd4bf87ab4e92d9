/** Removes expired sessions and mail links periodically, and revokes single sessions and reset links. */
import { runOncePerPeriod } from '../database/periodic-work.js';
import type { Database } from '../database/tables.js';
import type { Auth } from './auth.js';

const EVERY_MS = 3_600_000;
const MODELS = ['session', 'verification'] as const;

/** Prunes now and every hour. Returns a stop function. `database`: coordinators of a cluster take turns; null: no peers. */
export function startSessionCleanup(auth: Auth, database: Database | null, onError: (error: unknown) => void): () => Promise<void> {
  let round: Promise<unknown> = Promise.resolve();
  const deleteNow = (): Promise<void> => deleteExpired(auth, new Date());
  const prune = (): void => {
    round = (database === null ? deleteNow() : runOncePerPeriod(database, 'prune sessions', EVERY_MS, deleteNow)).catch(onError);
  };
  prune();
  const timer = setInterval(prune, EVERY_MS);
  timer.unref();
  return async () => {
    clearInterval(timer);
    await round;
  };
}

export async function deleteExpired(auth: Auth, before: Date): Promise<void> {
  const { adapter } = await auth.$context;
  for (const model of MODELS) await adapter.deleteMany({ model, where: [{ field: 'expiresAt', operator: 'lt', value: before }] });
}

/** Revokes a user's password-reset links, pending second steps and trusted browsers, because they may be stolen. */
export async function revokeResetLinks(auth: Auth, userId: string): Promise<void> {
  const { adapter } = await auth.$context;
  await adapter.deleteMany({ model: 'verification', where: [{ field: 'value', value: userId }] });
}

/** Revokes one session of a user. */
export async function revokeSession(auth: Auth, userId: string, sessionId: string): Promise<void> {
  const { adapter } = await auth.$context;
  const where = [
    { field: 'id', value: sessionId },
    { field: 'userId', value: userId },
  ];
  await adapter.deleteMany({ model: 'session', where });
}
