/**
 * `passkeys`: better-auth plugin for passkeys, which sign in without a password.
 *
 * Registration and sign-in require user verification (PIN, fingerprint or face), so that a passkey counts as two factors.
 */
import { passkey } from '@better-auth/passkey';
import { APIError } from 'better-auth/api';

export const MAX_PASSKEYS = 20;
export const TOO_MANY_PASSKEYS = `An account has at most ${MAX_PASSKEYS} passkeys. Remove one first.`;

interface StoredPasskey {
  readonly id: string;
  readonly createdAt: Date | null;
}

/** Part of better-auth's database adapter. */
interface PasskeyStore {
  findMany<Row>(query: { model: 'passkey'; where: { field: string; value: string }[]; limit: number }): Promise<Row[]>;
  deleteMany(query: { model: 'passkey'; where: { field: string; value: string }[] }): Promise<number>;
}

/**
 * Removes the newest passkeys beyond the maximum, and returns their ids.
 *
 * Called after each registration, because concurrent registrations pass the check before it together.
 */
export async function removeExcessPasskeys(store: PasskeyStore, userId: string): Promise<string[]> {
  const where = [{ field: 'userId', value: userId }];
  const stored = await store.findMany<StoredPasskey>({ model: 'passkey', where, limit: 10 * MAX_PASSKEYS });
  const order = ({ id, createdAt }: StoredPasskey): string => `${createdAt?.toISOString() ?? ''} ${id}`;
  const excess = stored.toSorted((one, other) => (order(one) < order(other) ? -1 : 1)).slice(MAX_PASSKEYS);
  for (const { id } of excess) await store.deleteMany({ model: 'passkey', where: [...where, { field: 'id', value: id }] });
  return excess.map(({ id }) => id);
}

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
