/** `/console/v1/playground-key`: a short-lived key for the playground of whoever is signed in, and the end of all of theirs. */
import { ConsolePlaygroundKeySchema } from '@inference/formats';
import Type from 'typebox';
import type { PlaygroundKeyRepository } from '../../database/accounts/playground-key-repository.js';
import { isoTime } from '../parameters/pagination.js';
import type { ConsoleApi } from '../plugins/console-api.js';

export function addPlaygroundKey(api: ConsoleApi, keys: PlaygroundKeyRepository): void {
  api.add({ method: 'POST', path: '/playground-key', response: ConsolePlaygroundKeySchema, status: 201 }, async ({ caller }) => {
    const { id, text, expiresAt, spendLimit } = await keys.make(caller.account.id);
    return { id, secret: text, expires_at: isoTime(expiresAt), spend_limit_micro_usd: spendLimit };
  });

  api.add({ method: 'DELETE', path: '/playground-key', response: Type.Object({}) }, async ({ caller }) => {
    await keys.revokeAll(caller.account.id);
    return {};
  });
}
