/** Creates, finds and revokes API keys. The text of a key is a prefix and 32 bytes in base64url; only its SHA-256 is stored. */
import { createHash, createHmac, randomBytes, randomUUID } from 'node:crypto';
import { microUsd } from '../../billing/micro-usd.js';
import { locked } from '../connection/row-lock.js';
import type { KeyBudget } from '../ledger/key-budget.js';
import type { ApiKeyKind, BudgetPeriod, Database, KeySignatureForm } from '../tables.js';

export const KEY_PREFIX = 'service-';
const KEY_PATTERN = /^service-[A-Za-z0-9_-]{43}$/;
/** Characters stored for display: the prefix and four more, too few to help guess the rest. */
const SHOWN_CHARACTERS = KEY_PREFIX.length + 4;

/** Limits of a key, and the form of signatures in its responses. */
export interface KeyLimits {
  readonly expiresAt: number | null;
  /** Maximum spending of the key over its lifetime, in micro-USD. The ledger checks every reservation against this limit. */
  readonly spendLimit: number | null;
  /** Maximum spending per day, week or month. The ledger checks every reservation against it, too. */
  readonly budget: KeyBudget | null;
  /** Allowed models; null: all. */
  readonly models: readonly string[] | null;
  /** Form of response signatures in streams; null: the default of the API format. */
  readonly signatureForm: KeySignatureForm | null;
}

export interface ApiKey extends KeyLimits {
  readonly id: string;
  readonly accountId: string;
  readonly kind: ApiKeyKind;
  /** Whether the key's account is suspended. */
  readonly suspended: boolean;
}

export const NO_LIMITS: KeyLimits = { expiresAt: null, spendLimit: null, budget: null, models: null, signatureForm: null };

export function newKeyText(): string {
  return KEY_PREFIX + randomBytes(32).toString('base64url');
}

/** Text of a key that is derived from a secret by HMAC, so that all coordinators of a cluster compute the same key. */
export function derivedKeyText(secret: Uint8Array, label: string): string {
  return KEY_PREFIX + createHmac('sha256', secret).update(label).digest('base64url');
}

/** Whether a text has the form of a key. Checked before the text is hashed and looked up. */
export function looksLikeKey(text: string): boolean {
  return KEY_PATTERN.test(text);
}

export function hashKey(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

export async function createAccount(database: Database, name: string, now: number): Promise<string> {
  const id = randomUUID();
  await database
    .insertInto('accounts')
    .values({ id, name, created_at: now, admin_since: null, suspended_at: null, deleted_at: null })
    .execute();
  return id;
}

interface NewKey {
  readonly accountId: string;
  readonly kind: ApiKeyKind;
  readonly text: string;
  readonly name?: string;
  readonly limits?: KeyLimits;
  readonly createdFor?: 'playground';
  /** User who created the key. */
  readonly createdBy?: string;
  readonly now: number;
}

/** Stores a key's hash. Returns the key's id. */
export async function addKey(database: Database, key: NewKey): Promise<string> {
  const id = randomUUID();
  const limits = key.limits ?? NO_LIMITS;
  await database
    .insertInto('api_keys')
    .values({
      id,
      account_id: key.accountId,
      kind: key.kind,
      hash: hashKey(key.text),
      prefix: key.text.slice(0, SHOWN_CHARACTERS),
      name: key.name ?? '',
      created_at: key.now,
      last_used_at: null,
      revoked_at: null,
      expires_at: limits.expiresAt,
      spend_limit_micro_usd: limits.spendLimit,
      ...budgetColumns(limits.budget, key.now),
      models: modelsText(limits.models),
      made_for: key.createdFor ?? null,
      signature_form: limits.signatureForm,
      created_by: key.createdBy ?? null,
    })
    .execute();
  return id;
}

/** Finds a key by its hash, revoked or not. A key of a closed account is returned as revoked. */
export async function findKey(database: Database, hash: string): Promise<(ApiKey & { readonly revokedAt: number | null }) | null> {
  const row = await database
    .selectFrom('api_keys')
    .innerJoin('accounts', 'accounts.id', 'api_keys.account_id')
    .select([
      'api_keys.id',
      'account_id',
      'kind',
      'revoked_at',
      'expires_at',
      'spend_limit_micro_usd',
      'budget_micro_usd',
      'budget_period',
      'models',
      'signature_form',
      'suspended_at',
      'deleted_at',
    ])
    .where('hash', '=', hash)
    .executeTakeFirst();
  if (row === undefined) return null;
  return {
    id: row.id,
    accountId: row.account_id,
    kind: row.kind,
    expiresAt: row.expires_at,
    spendLimit: row.spend_limit_micro_usd,
    budget: budgetOf(row),
    models: modelsOf(row.models),
    signatureForm: row.signature_form,
    suspended: row.suspended_at !== null,
    revokedAt: row.revoked_at ?? row.deleted_at,
  };
}

/** Revokes a key permanently. False if the key is unknown or already revoked. */
export async function revokeKey(database: Database, id: string, now: number): Promise<boolean> {
  const result = await database
    .updateTable('api_keys')
    .set({ revoked_at: now })
    .where('id', '=', id)
    .where('revoked_at', 'is', null)
    .executeTakeFirst();
  return result.numUpdatedRows === 1n;
}

/** Stores the times of last use by key id, in one transaction. */
export async function recordKeyUse(database: Database, uses: ReadonlyMap<string, number>): Promise<void> {
  // Other coordinators update the same rows. A fixed order of the row locks avoids deadlocks.
  const ordered = [...uses].sort(([a], [b]) => (a < b ? -1 : 1));
  await database.transaction().execute(async (transaction) => {
    for (const [id, time] of ordered) await transaction.updateTable('api_keys').set({ last_used_at: time }).where('id', '=', id).execute();
  });
}

/**
 * Locks all keys that an account owns or, as a user, created, in the order of {@link recordKeyUse}.
 *
 * Call before a statement that changes several of them, which PostgreSQL would lock in any order, so that two could deadlock.
 * PostgreSQL and JavaScript sort these ids alike, because they are UUIDs.
 */
export async function lockKeysOf(transaction: Database, accountId: string): Promise<void> {
  const keys = transaction
    .selectFrom('api_keys')
    .select('id')
    .where((where) => where.or([where('account_id', '=', accountId), where('created_by', '=', accountId)]))
    .orderBy('id');
  await locked(transaction, keys, 'update').execute();
}

/** Columns of a budget that is set at `now`. Forgets which alert e-mails were sent, because they were about another budget. */
export function budgetColumns(budget: KeyBudget | null, now: number) {
  return {
    budget_micro_usd: budget?.amount ?? null,
    budget_period: budget?.period ?? null,
    budget_set_at: budget === null ? null : now,
    budget_mailed_percent: null,
    budget_mailed_at: null,
  };
}

export function budgetOf(row: { readonly budget_micro_usd: number | null; readonly budget_period: BudgetPeriod | null }): KeyBudget | null {
  const { budget_micro_usd: amount, budget_period: period } = row;
  return amount === null || period === null ? null : { amount: microUsd(amount), period };
}

/** Stored form of a model list. `modelsOf` reads it. */
export function modelsText(models: readonly string[] | null): string | null {
  return models === null ? null : JSON.stringify(models);
}

export function modelsOf(text: string | null): readonly string[] | null {
  return text === null ? null : (JSON.parse(text) as string[]);
}
