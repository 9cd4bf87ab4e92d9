/**
 * `passkeys` configures the plugin for passkeys of better-auth, the sign-in library.
 *
 * Registration and sign-in require user verification (PIN, fingerprint or face), so a passkey replaces password and second factor.
 */
import { passkey } from '@better-auth/passkey';
import { APIError } from 'better-auth/api';

export const MAX_PASSKEYS = 20;
export const TOO_MANY_PASSKEYS = `An account has at most ${MAX_PASSKEYS} passkeys. Remove one first.`;

/** Part of better-auth's database adapter. */
interface PasskeyStore {
  count(query: { model: 'passkey'; where: { field: string; value: string }[] }): Promise<number>;
  deleteMany(query: { model: 'passkey'; where: { field: string; value: string }[] }): Promise<number>;
}

/**
 * Removes the passkey that was just registered if the account has too many now. Returns whether it was removed.
 *
 * Necessary because several concurrent registrations can pass the check before the insert. Each removes only its own passkey, never one
 * that another request has reported as stored, so concurrent registrations may all fail.
 */
export async function removeIfExcess(store: PasskeyStore, userId: string, passkeyId: string): Promise<boolean> {
  const where = [{ field: 'userId', value: userId }];
  if ((await store.count({ model: 'passkey', where })) <= MAX_PASSKEYS) return false;
  await store.deleteMany({ model: 'passkey', where: [...where, { field: 'id', value: passkeyId }] });
  return true;
}

/** `publicUrl` is the origin of the console. If null, passkeys work at `localhost` only. */
export function passkeys(publicUrl: string | null) {
  return passkey({
    rpName: 'Inference',
    rpID: publicUrl === null ? 'localhost' : new URL(publicUrl).hostname,
    origin: publicUrl,
    authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
    advanced: { webAuthnChallengeCookie: 'passkey_challenge' },
    // The plugin's field is `credentialID`. The column `credential_id` is read as `credentialId` (CamelCasePlugin).
    schema: { passkey: { modelName: 'authPasskeys', fields: { credentialID: 'credentialId' } } },
    registration: {
      afterVerification: async ({ ctx, verification, user }) => {
        if (verification.registrationInfo?.userVerified !== true) throw notVerified();
        const where = [{ field: 'userId', value: user.id }];
        if ((await ctx.context.adapter.count({ model: 'passkey', where })) >= MAX_PASSKEYS) {
          throw new APIError('CONFLICT', { message: TOO_MANY_PASSKEYS });
        }
      },
    },
    authentication: {
      afterVerification: async ({ ctx, verification }) => {
        const { userVerified, credentialID } = verification.authenticationInfo;
        if (!userVerified) throw notVerified();
        const where = [{ field: 'credentialID', value: credentialID }];
        await ctx.context.adapter.update({ model: 'passkey', where, update: { lastUsedAt: new Date() } });
      },
    },
  });
}

function notVerified(): APIError {
  return new APIError('UNAUTHORIZED', { message: 'The authenticator did not verify you by PIN, fingerprint or face.' });
}
