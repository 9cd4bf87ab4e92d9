/** Removes what has expired and nobody will use again: sessions, links of mails. */
import type { Auth } from './auth.js';

const EVERY_MS = 3_600_000;
const MODELS = ['session', 'verification'] as const;

/** Prunes now and every hour. Returns the function that stops it, which waits for a round that runs. */
export function startPruning(auth: Auth, onError: (error: unknown) => void): () => Promise<void> {
  let round = Promise.resolve();
  const prune = (): void => {
    round = pruneExpired(auth, new Date()).catch(onError);
  };
  prune();
  const timer = setInterval(prune, EVERY_MS);
  timer.unref();
  return async () => {
    clearInterval(timer);
    await round;
  };
}

export async function pruneExpired(auth: Auth, before: Date): Promise<void> {
  const { adapter } = await auth.$context;
  for (const model of MODELS) await adapter.deleteMany({ model, where: [{ field: 'expiresAt', operator: 'lt', value: before }] });
}
