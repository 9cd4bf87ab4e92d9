/** Accounts and their keys. A key is 32 random bytes behind a fixed prefix; only its SHA-256 is stored. */
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import type { ApiKeyKind, Database } from './tables.js';

/** Every key begins like this (spec: authentication). */
export const KEY_PREFIX = 'service-';
const KEY_PATTERN = /^service-[A-Za-z0-9_-]{43}$/;
/** Characters kept for people to recognise a key by; the prefix and four more tell nothing useful about the rest. */
const SHOWN_CHARACTERS = KEY_PREFIX.length + 4;

export interface ApiKey {
  readonly id: string;
  readonly accountId: string;
  readonly kind: ApiKeyKind;
}

export function newKeyText(): string {
  return KEY_PREFIX + randomBytes(32).toString('base64url');
}

/** Whether a text could be a key at all. Checked first, so that other texts cost no hash and no query. */
export function looksLikeKey(text: string): boolean {
  return KEY_PATTERN.test(text);
}

export function hashKey(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

export async function createAccount(database: Database, name: string, now: number): Promise<string> {
  const id = randomUUID();
  await database.insertInto('accounts').values({ id, name, created_at: now }).execute();
  return id;
}

/** Stores a key's hash. Returns the key's id. */
export async function addKey(database: Database, key: { accountId: string; kind: ApiKeyKind; text: string; now: number }): Promise<string> {
  const id = randomUUID();
  await database
    .insertInto('api_keys')
    .values({
      id,
      account_id: key.accountId,
      kind: key.kind,
      hash: hashKey(key.text),
      prefix: key.text.slice(0, SHOWN_CHARACTERS),
      created_at: key.now,
      last_used_at: null,
      revoked_at: null,
    })
    .execute();
  return id;
}

/** The key with this hash, revoked or not. */
export async function findKey(database: Database, hash: string): Promise<(ApiKey & { readonly revokedAt: number | null }) | null> {
  const row = await database
    .selectFrom('api_keys')
    .select(['id', 'account_id', 'kind', 'revoked_at'])
    .where('hash', '=', hash)
    .executeTakeFirst();
  return row === undefined ? null : { id: row.id, accountId: row.account_id, kind: row.kind, revokedAt: row.revoked_at };
}

/** Revokes a key for good. False when there is no such key, or it was revoked before. */
export async function revokeKey(database: Database, id: string, now: number): Promise<boolean> {
  const result = await database
    .updateTable('api_keys')
    .set({ revoked_at: now })
    .where('id', '=', id)
    .where('revoked_at', 'is', null)
    .executeTakeFirst();
  return result.numUpdatedRows === 1n;
}

/** Records when keys were last used, in one transaction. */
export async function recordKeyUse(database: Database, uses: ReadonlyMap<string, number>): Promise<void> {
  await database.transaction().execute(async (transaction) => {
    for (const [id, time] of uses) await transaction.updateTable('api_keys').set({ last_used_at: time }).where('id', '=', id).execute();
  });
}
