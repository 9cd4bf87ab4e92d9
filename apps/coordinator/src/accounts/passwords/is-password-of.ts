/** `isPasswordOf` checks the password of a signed-in user, for actions that better-auth does not protect with the password. */
import type { Auth } from '../auth.js';

/** False for a user without a password. Call within the `SignInQueue`, because hashing is expensive. */
export async function isPasswordOf(auth: Auth, userId: string, password: string): Promise<boolean> {
  const { internalAdapter, password: hasher } = await auth.$context;
  const hash = (await internalAdapter.findCredentialAccount(userId))?.password ?? null;
  return hash !== null && hasher.verify({ hash, password });
}
