/** `/console/v1/playground-key`: a short-lived key for the playground of whoever is signed in, and the end of all of theirs. */
import { ConsolePlaygroundKeySchema } from '@inference/formats';
import Type from 'typebox';
import type { PlaygroundKeys } from '../../store/playground-keys.js';
import type { ConsoleApi } from './console-api.js';
import { isoTime } from './page.js';

export function addPlaygroundKey(api: ConsoleApi, keys: PlaygroundKeys): void {
  api.add({ method: 'POST', path: '/playground-key', answer: ConsolePlaygroundKeySchema, status: 201 }, async ({ who }) => {
    const { id, text, expiresAt, spendLimit } = await keys.make(who.account.id);
    return { id, secret: text, expires_at: isoTime(expiresAt), spend_limit_micro_usd: spendLimit };
  });

  api.add({ method: 'DELETE', path: '/playground-key', answer: Type.Object({}) }, async ({ who }) => {
    await keys.revokeAll(who.account.id);
    return {};
  });
}
