/** Passkeys that sign in without a password. Both ceremonies require user verification, so that a passkey counts as two factors. */
import { passkey } from '@better-auth/passkey';
import { APIError } from 'better-auth/api';

export const MAX_PASSKEYS = 20;

/** `publicUrl`: origin of the console; null: passkeys work at `localhost` only. */
export function passkeys(publicUrl: string | null) {
  return passkey({
    rpName: 'Inference',
    rpID: publicUrl === null ? 'localhost' : new URL(publicUrl).hostname,
    origin: publicUrl,
    authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
    advanced: { webAuthnChallengeCookie: 'passkey_challenge' },
    // Column `credential_id` becomes `credentialId` in rows.
    schema: { passkey: { modelName: 'authPasskeys', fields: { credentialID: 'credentialId' } } },
    registration: {
      afterVerification: async ({ ctx, verification, user }) => {
        if (verification.registrationInfo?.userVerified !== true) throw notVerified();
        const where = [{ field: 'userId', value: user.id }];
        if ((await ctx.context.adapter.count({ model: 'passkey', where })) >= MAX_PASSKEYS) {
          throw new APIError('CONFLICT', { message: `An account has at most ${MAX_PASSKEYS} passkeys. Remove one first.` });
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
