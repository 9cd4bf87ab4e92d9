/** `OwnedKeyRepository`: lists, creates, changes and revokes an account's API keys for the console. Excludes playground keys. */
import { cleanName } from '@inference/protocol';
import { sql } from 'kysely';
import { microUsd } from '../../billing/micro-usd.js';
import { DAY_MS } from '../../time-units.js';
import { dayOf, nextPeriodStart, type PeriodSpending, spentInPeriod } from '../ledger/key-budget.js';
import { isAfterPosition } from '../row-position.js';
import type { BudgetPeriod, Database, KeySignatureForm } from '../tables.js';
import { lockAccount } from './account-repository.js';
import type { ApiKeyCache } from './api-key-cache.js';
import { addKey, budgetColumns, budgetOf, type KeyLimits, modelsOf, modelsText, newKeyText } from './api-key-repository.js';

export interface OwnedKey extends KeyLimits {
  readonly id: string;
  readonly name: string;
  readonly prefix: string;
  readonly createdAt: number;
  readonly lastUsedAt: number | null;
  readonly revokedAt: number | null;
  /** Micro-USD spent so far. */
  readonly spent: number;
  /** Micro-USD spent in the current budget period, and the start of the next (milliseconds since 1970). Null: no budget. */
  readonly budgetUse: { readonly spent: number; readonly resetsAt: number } | null;
  /** User; null: unknown for old keys, or deleted. */
  readonly createdBy: { readonly id: string; readonly name: string } | null;
}

interface KeyChange extends Partial<KeyLimits> {
  readonly name?: string;
}

/** Maximum unrevoked keys per account. */
export const MAX_KEYS = 200;

export class OwnedKeyRepository {
  readonly #database: Database;
  readonly #apiKeyCache: ApiKeyCache;
  readonly #now: () => number;

  constructor(options: { database: Database; apiKeyCache: ApiKeyCache; now: () => number }) {
    this.#database = options.database;
    this.#apiKeyCache = options.apiKeyCache;
    this.#now = options.now;
  }

  /** At most `limit` keys after the position `after`, newest first. */
  async list(accountId: string, limit: number, after: { readonly at: number; readonly id: string } | null): Promise<OwnedKey[]> {
    let query = this.#select(accountId);
    if (after !== null) {
      query = query.where((where) => isAfterPosition(where, 'api_keys.created_at', 'api_keys.id', after));
    }
    const rows = await query.orderBy('api_keys.created_at', 'desc').orderBy('api_keys.id', 'desc').limit(limit).execute();
    return rows.map((row) => fromRow(row, this.#now()));
  }

  async find(accountId: string, id: string): Promise<OwnedKey | null> {
    const row = await this.#select(accountId).where('api_keys.id', '=', id).executeTakeFirst();
    return row === undefined ? null : fromRow(row, this.#now());
  }

  /** Creates a key. `text` is shown once and not stored. Null: the account has {@link MAX_KEYS}. `createdBy`: id of the user. */
  async create(
    accountId: string,
    name: string,
    limits: KeyLimits,
    createdBy: string = accountId,
  ): Promise<{ readonly key: OwnedKey; readonly text: string } | null> {
    const text = newKeyText();
    const id = await this.#database.transaction().execute(async (transaction) => {
      await lockAccount(transaction, accountId);
      const { count } = await transaction
        .selectFrom('api_keys')
        .select(sql<number>`count(*)`.as('count'))
        .where('account_id', '=', accountId)
        .where('made_for', 'is', null)
        .where('revoked_at', 'is', null)
        .executeTakeFirstOrThrow();
      if (count >= MAX_KEYS) return null;
      return addKey(transaction, { accountId, kind: 'api', text, name, limits, createdBy, now: this.#now() });
    });
    if (id === null) return null;
    const key = await this.find(accountId, id);
    if (key === null) throw new Error('the new key is missing');
    return { key, text };
  }

  /** Changes a key that is not revoked. Null if the account has no such key. */
  async change(accountId: string, id: string, change: KeyChange): Promise<OwnedKey | null> {
    // An unchanged budget is not written, because that would reset which alert e-mails were sent.
    const current = change.budget === undefined ? null : await this.find(accountId, id);
    const isSameBudget =
      current !== null && current.budget?.amount === change.budget?.amount && current.budget?.period === change.budget?.period;
    const values = {
      ...(change.name === undefined ? {} : { name: change.name }),
      ...(change.expiresAt === undefined ? {} : { expires_at: change.expiresAt }),
      ...(change.spendLimit === undefined ? {} : { spend_limit_micro_usd: change.spendLimit }),
      ...(change.budget === undefined || isSameBudget ? {} : budgetColumns(change.budget, this.#now())),
      ...(change.models === undefined ? {} : { models: modelsText(change.models) }),
      ...(change.signatureForm === undefined ? {} : { signature_form: change.signatureForm }),
    };
    if (Object.keys(values).length > 0) {
      const { numUpdatedRows } = await this.#database
        .updateTable('api_keys')
        .set(values)
        .where('id', '=', id)
        .where('account_id', '=', accountId)
        .where('kind', '=', 'api')
        .where('made_for', 'is', null)
        .where('revoked_at', 'is', null)
        .executeTakeFirst();
      if (numUpdatedRows !== 1n) return null;
      this.#apiKeyCache.changed(id);
    }
    return this.find(accountId, id);
  }

  /** Revokes a key permanently. An already revoked key stays unchanged. Null if the account has no such key. */
  async revoke(accountId: string, id: string): Promise<OwnedKey | null> {
    if ((await this.find(accountId, id)) === null) return null;
    await this.#apiKeyCache.revoke(id);
    return this.find(accountId, id);
  }

  #select(accountId: string) {
    return this.#database
      .selectFrom('api_keys')
      .leftJoin('key_spend', 'key_spend.api_key_id', 'api_keys.id')
      .leftJoin('auth_users', 'auth_users.id', 'api_keys.created_by')
      .select([
        'api_keys.id',
        'api_keys.name',
        'prefix',
        'api_keys.created_at',
        'last_used_at',
        'revoked_at',
        'expires_at',
        'spend_limit_micro_usd',
        'budget_micro_usd',
        'budget_period',
        'models',
        'signature_form',
        'key_spend.spent',
        'key_spend.counted_day',
        'key_spend.day_spent',
        'key_spend.week_spent',
        'key_spend.month_spent',
        'auth_users.id as creator_id',
        'auth_users.name as creator_name',
      ])
      .where('account_id', '=', accountId)
      .where('kind', '=', 'api')
      .where('made_for', 'is', null);
  }
}

interface KeyRow {
  readonly id: string;
  readonly name: string;
  readonly prefix: string;
  readonly created_at: number;
  readonly last_used_at: number | null;
  readonly revoked_at: number | null;
  readonly expires_at: number | null;
  readonly spend_limit_micro_usd: number | null;
  readonly budget_micro_usd: number | null;
  readonly budget_period: BudgetPeriod | null;
  readonly models: string | null;
  readonly signature_form: KeySignatureForm | null;
  readonly spent: number | null;
  readonly counted_day: number | null;
  readonly day_spent: number | null;
  readonly week_spent: number | null;
  readonly month_spent: number | null;
  readonly creator_id: string | null;
  readonly creator_name: string | null;
}

function fromRow(row: KeyRow, now: number): OwnedKey {
  const budget = budgetOf(row);
  return {
    id: row.id,
    name: row.name,
    prefix: row.prefix,
    createdAt: row.created_at,
    lastUsedAt: row.last_used_at,
    revokedAt: row.revoked_at,
    expiresAt: row.expires_at,
    spendLimit: row.spend_limit_micro_usd,
    budget,
    budgetUse: budget === null ? null : budgetUse(periodSpending(row), budget.period, now),
    models: modelsOf(row.models),
    signatureForm: row.signature_form,
    spent: row.spent ?? 0,
    createdBy: row.creator_id === null ? null : { id: row.creator_id, name: cleanName(row.creator_name ?? '') },
  };
}

function budgetUse(spending: PeriodSpending, period: BudgetPeriod, now: number): { readonly spent: number; readonly resetsAt: number } {
  const day = Math.max(dayOf(now), spending.countedDay);
  return { spent: spentInPeriod(spending, period, day), resetsAt: nextPeriodStart(period, day) * DAY_MS };
}

/** Spending sums of a key; 0 for a key without requests, which has no row in `key_spend`. */
function periodSpending({ counted_day, day_spent, week_spent, month_spent }: KeyRow): PeriodSpending {
  return {
    countedDay: counted_day ?? 0,
    daySpent: microUsd(day_spent ?? 0),
    weekSpent: microUsd(week_spent ?? 0),
    monthSpent: microUsd(month_spent ?? 0),
  };
}
