/** The operator's own admin key, given by the environment: taken up at the start, so that a new database can be operated. */
import { StartupError } from '../../config/startup-error.js';
import type { Database } from '../tables.js';
import { addKey, createAccount, findKey, hashKey } from './api-key-repository.js';

const ACCOUNT_NAME = 'operator';

/** Adds the key unless it is there. Throws {@link StartupError} when it was revoked, or is a key of another kind. */
export async function ensureAdminKey(database: Database, text: string, now: number): Promise<void> {
  const found = await findKey(database, hashKey(text));
  if (found !== null) {
    if (found.revokedAt !== null) throw new StartupError('ADMIN_KEY was revoked. Choose another one.');
    if (found.kind !== 'admin') throw new StartupError('ADMIN_KEY is a key for the API. Choose another one.');
    return;
  }
  const account = await database.selectFrom('accounts').select('id').where('name', '=', ACCOUNT_NAME).executeTakeFirst();
  const accountId = account?.id ?? (await createAccount(database, ACCOUNT_NAME, now));
  await addKey(database, { accountId, kind: 'admin', text, name: 'ADMIN_KEY', now });
}
