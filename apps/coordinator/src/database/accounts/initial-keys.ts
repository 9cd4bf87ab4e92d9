/** Creates the first API keys at the start of a coordinator: the key of ADMIN_KEY, and in development mode two keys in a file. */
import { chmodSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { lazyValidator } from '@inference/protocol';
import Type, { type Static } from 'typebox';
import { errorReason, StartupError } from '../../config/startup-error.js';
import { sharedSecret } from '../secret-repository.js';
import type { ApiKeyKind, Database } from '../tables.js';
import { addKey, createAccount, derivedKeyText, findKey, hashKey, looksLikeKey, newKeyText } from './api-key-repository.js';

const DevelopmentKeysSchema = Type.Object({ api_key: Type.String(), admin_key: Type.String() });
export type DevelopmentKeys = Static<typeof DevelopmentKeysSchema>;
const validator = lazyValidator(DevelopmentKeysSchema);

const DEVELOPMENT_ACCOUNT = 'development';

/** Development keys of a coordinator that runs alone. New ones replace missing and revoked keys. Throws {@link StartupError}. */
export async function ensureDevelopmentKeys(database: Database, file: string, now: number): Promise<DevelopmentKeys> {
  const stored = readKeys(file);
  if (stored !== null && (await storeUnlessRevoked(database, stored, now))) {
    chmodSync(file, 0o600);
    return stored;
  }
  const keys = { api_key: newKeyText(), admin_key: newKeyText() };
  await addDevelopmentKey(database, keys.api_key, 'api', now);
  await addDevelopmentKey(database, keys.admin_key, 'admin', now);
  writeKeys(file, keys);
  return keys;
}

/** Name of the row in `secrets` from which a cluster derives its development keys. */
const SHARED_KEYS_SECRET = 'development_keys';
const MAX_REVOKED_KEYS = 1000;

/** Development keys of a cluster, derived from a secret of the database. Revoked keys are replaced. Throws {@link StartupError}. */
export async function ensureSharedDevelopmentKeys(database: Database, file: string, now: number): Promise<DevelopmentKeys> {
  const secret = await sharedSecret(database, SHARED_KEYS_SECRET);
  const keys = await database.transaction().execute(async (transaction) => {
    // Serialises coordinators that start at the same time and add keys.
    await transaction.selectFrom('secrets').select('name').where('name', '=', SHARED_KEYS_SECRET).forUpdate().execute();
    for (let number = 0; number < MAX_REVOKED_KEYS; number++) {
      const candidate = { api_key: derivedKeyText(secret, `api ${number}`), admin_key: derivedKeyText(secret, `admin ${number}`) };
      if (await storeUnlessRevoked(transaction, candidate, now)) return candidate;
    }
    throw new StartupError('Too many development keys were revoked. Use another database.');
  });
  writeKeys(file, keys);
  return keys;
}

/** False if a key was revoked or is of the wrong kind. Keys that the database lacks, because it is new, are added. */
async function storeUnlessRevoked(database: Database, keys: DevelopmentKeys, now: number): Promise<boolean> {
  const initial: readonly (readonly [string, ApiKeyKind])[] = [
    [keys.api_key, 'api'],
    [keys.admin_key, 'admin'],
  ];
  for (const [text, kind] of initial) {
    if (!looksLikeKey(text)) return false;
    const found = await findKey(database, hashKey(text));
    if (found !== null && (found.revokedAt !== null || found.kind !== kind)) return false;
  }
  for (const [text, kind] of initial) {
    if ((await findKey(database, hashKey(text))) === null) await addDevelopmentKey(database, text, kind, now);
  }
  return true;
}

async function addDevelopmentKey(database: Database, text: string, kind: ApiKeyKind, now: number): Promise<void> {
  const account = await database.selectFrom('accounts').select('id').where('name', '=', DEVELOPMENT_ACCOUNT).executeTakeFirst();
  const accountId = account?.id ?? (await createAccount(database, DEVELOPMENT_ACCOUNT, now));
  await addKey(database, { accountId, kind, text, now });
}

function readKeys(file: string): DevelopmentKeys | null {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if (errorReason(error) === 'ENOENT') return null;
    throw new StartupError(`The development keys ${file} cannot be read: ${errorReason(error)}.`, { cause: error });
  }
  try {
    const value: unknown = JSON.parse(text);
    if (validator().Check(value)) return value;
  } catch {
    // Not rethrown, because the message of a JSON error would quote the keys.
  }
  throw new StartupError(`The development keys ${file} are damaged; remove the file to have new ones made.`);
}

function writeKeys(file: string, keys: DevelopmentKeys): void {
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    const fresh = `${file}.new`;
    writeFileSync(fresh, `${JSON.stringify(keys, null, 2)}\n`, { mode: 0o600 });
    chmodSync(fresh, 0o600);
    renameSync(fresh, file);
  } catch (error) {
    throw new StartupError(`The development keys ${file} cannot be written: ${errorReason(error)}.`, { cause: error });
  }
}

const OPERATOR_ACCOUNT = 'operator';

/** Adds the key of ADMIN_KEY if absent. Throws {@link StartupError} if the key was revoked or is of another kind. */
export async function ensureAdminKey(database: Database, text: string, now: number): Promise<void> {
  const found = await findKey(database, hashKey(text));
  if (found !== null) {
    if (found.revokedAt !== null) throw new StartupError('ADMIN_KEY was revoked. Choose another one.');
    if (found.kind !== 'admin') throw new StartupError('ADMIN_KEY is a key for the API. Choose another one.');
    return;
  }
  const account = await database.selectFrom('accounts').select('id').where('name', '=', OPERATOR_ACCOUNT).executeTakeFirst();
  const accountId = account?.id ?? (await createAccount(database, OPERATOR_ACCOUNT, now));
  await addKey(database, { accountId, kind: 'admin', text, name: 'ADMIN_KEY', now });
}
