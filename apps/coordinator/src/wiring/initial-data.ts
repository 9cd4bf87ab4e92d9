/** `ensureInitialData` creates missing data: development keys with a deposit (in development mode), and the operator's admin key. */
import { join } from 'node:path';
import type { Ledger } from '../billing/ledger/ledger.js';
import { ensureDevelopmentDeposit } from '../billing/payments/deposits.js';
import { findKey, hashKey } from '../database/accounts/api-key-repository.js';
import {
  type DevelopmentKeys,
  ensureAdminKey,
  ensureDevelopmentKeys,
  ensureSharedDevelopmentKeys,
} from '../database/accounts/initial-keys.js';
import type { Database } from '../database/tables.js';
import type { StartContext } from './start-context.js';

/** Returns the development keys. Null outside development mode. */
export async function ensureInitialData(context: StartContext, database: Database, ledger: Ledger): Promise<DevelopmentKeys | null> {
  const { config, now } = context;
  const keys = config.development ? await developmentKeys(context, database) : null;
  if (keys !== null) {
    const key = await findKey(database, hashKey(keys.api_key));
    if (key !== null) await ensureDevelopmentDeposit(ledger, key.accountId, now());
  }
  if (config.console.adminKey !== null) await ensureAdminKey(database, config.console.adminKey, now());
  return keys;
}

function developmentKeys({ config, directory, now }: StartContext, database: Database): Promise<DevelopmentKeys> {
  const ensure = config.cluster === null ? ensureDevelopmentKeys : ensureSharedDevelopmentKeys;
  return ensure(database, join(directory, 'development-keys.json'), now());
}
