/** `isPasswordOf`: checks the password of a signed-in user, for routes whose library does not ask for a password. */
import type { Auth } from '../auth.js';

/** False also for a user without a password. Call within the sign-in queue, because hashing is expensive. */
export async function isPasswordOf(auth: Auth, userId: string, password: string): Promise<boolean> {
  const { internalAdapter, password: hasher } = await auth.$context;
  const hash = (await internalAdapter.findCredentialAccount(userId))?.password ?? null;
  return hash !== null && hasher.verify({ hash, password });
}
