/** `/console/v1/two-factor` and `/console/v1/passkeys`: show second factors, rename passkeys. auth-routes.ts adds and removes them. */
import {
  type ConsolePasskey,
  ConsolePasskeyListSchema,
  ConsolePasskeySchema,
  ConsoleTwoFactorSchema,
  RequestError,
  UpdatePasskeySchema,
} from '@inference/formats';
import type { Auth } from '../../accounts/auth.js';
import type { ConsoleApi } from '../plugins/console-api.js';

/** Row of better-auth's table. A `backedUp` passkey is synchronised between the person's devices. */
interface PasskeyRow {
  readonly id: string;
  readonly name?: string | null;
  readonly createdAt?: Date | null;
  readonly lastUsedAt?: Date | null;
  readonly backedUp: boolean;
}

/** better-auth's name of the table. */
const MODEL = 'passkey';

export function addSecondFactorRoutes(api: ConsoleApi, auth: Auth): void {
  api.add({ method: 'GET', path: '/two-factor', response: ConsoleTwoFactorSchema }, async ({ userId }) => {
    const { internalAdapter } = await auth.$context;
    const user = await internalAdapter.findUserById(userId);
    if (user === null || !('twoFactorEnabled' in user) || user.twoFactorEnabled !== true) return { enabled: false, backup_codes_left: 0 };
    const { backupCodes } = await auth.api.viewBackupCodes({ body: { userId } });
    return { enabled: true, backup_codes_left: backupCodes.length };
  });

  api.add({ method: 'GET', path: '/passkeys', response: ConsolePasskeyListSchema }, async ({ userId }) => {
    const { adapter } = await auth.$context;
    const where = [{ field: 'userId', value: userId }];
    const rows = await adapter.findMany<PasskeyRow>({ model: MODEL, where, sortBy: { field: 'createdAt', direction: 'asc' } });
    return { data: rows.map(passkeyBody) };
  });

  api.add(
    { method: 'PATCH', path: '/passkeys/:id', body: UpdatePasskeySchema, response: ConsolePasskeySchema },
    async ({ userId, params, body: { name } }) => {
      const { adapter } = await auth.$context;
      const where = [
        { field: 'id', value: params.id ?? '' },
        { field: 'userId', value: userId },
      ];
      const row = await adapter.update<PasskeyRow>({ model: MODEL, where, update: { name } });
      if (row === null) throw new RequestError('not_found', null, 'There is no such passkey.');
      return passkeyBody(row);
    },
  );
}

function passkeyBody({ id, name, createdAt, lastUsedAt, backedUp }: PasskeyRow): ConsolePasskey {
  return {
    id,
    name: name ?? 'Passkey',
    synced: backedUp,
    created_at: createdAt?.toISOString() ?? null,
    last_used_at: lastUsedAt?.toISOString() ?? null,
  };
}
