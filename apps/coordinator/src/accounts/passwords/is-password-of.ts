/** `isPasswordOf` checks the password of a user, for actions for which better-auth, the sign-in library, does not ask for it. */
import type { Auth } from '../auth.js';

/** False for a user without a password. Call within the `SignInQueue`, because hashing is expensive. */
export async function isPasswordOf(auth: Auth, userId: string, password: string): Promise<boolean> {
  const { internalAdapter, password: hasher } = await auth.$context;
  const hash = (await internalAdapter.findCredentialAccount(userId))?.password ?? null;
  return hash !== null && hasher.verify({ hash, password });
}
