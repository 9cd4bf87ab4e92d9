/** Checks the password of a signed-in user, for routes of the sign-in library that ask for none. */
import type { Auth } from '../auth.js';

/** False also for a user without a password. Hashes: run within the sign-in queue. */
export async function isPasswordOf(auth: Auth, userId: string, password: string): Promise<boolean> {
  const { internalAdapter, password: hasher } = await auth.$context;
  const hash = (await internalAdapter.findCredentialAccount(userId))?.password ?? null;
  return hash !== null && hasher.verify({ hash, password });
}
