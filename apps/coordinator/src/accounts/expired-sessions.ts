/** Removes what nobody is to use again: sessions and links of mails that have expired, links for a password that is there. */
import type { Auth } from './auth.js';

const EVERY_MS = 3_600_000;
const MODELS = ['session', 'verification'] as const;

/** Prunes now and every hour. Returns the function that stops it, which waits for a round that runs. */
export function startSessionCleanup(auth: Auth, onError: (error: unknown) => void): () => Promise<void> {
  let round = Promise.resolve();
  const prune = (): void => {
    round = deleteExpired(auth, new Date()).catch(onError);
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

/** Ends the links for a new password that a user was sent: one who has it by now needs none, and others must not have one. */
export async function revokeResetLinks(auth: Auth, userId: string): Promise<void> {
  const { adapter } = await auth.$context;
  await adapter.deleteMany({ model: 'verification', where: [{ field: 'value', value: userId }] });
}

/** Ends one session of a user. */
export async function revokeSession(auth: Auth, userId: string, sessionId: string): Promise<void> {
  const { adapter } = await auth.$context;
  const where = [
    { field: 'id', value: sessionId },
    { field: 'userId', value: userId },
  ];
  await adapter.deleteMany({ model: 'session', where });
}
