/** `AccountRepository` creates, finds, changes and closes accounts. The functions below lock an account's row or read a few facts. */
import { cleanName } from '@inference/protocol';
import { sql } from 'kysely';
import { dialectOf } from '../connection/dialect.js';
import { eraseAccount } from '../privacy/erase-account.js';
import { isAfterPosition } from '../row-position.js';
import type { Database, Tables } from '../tables.js';
import { lockKeysOf } from './api-key-repository.js';

export interface Account {
  readonly id: string;
  readonly name: string;
  readonly createdAt: number;
  readonly isAdmin: boolean;
  readonly suspendedAt: number | null;
  readonly deletedAt: number | null;
}

export interface ListedAccount extends Account {
  /** Null for an account without a user, and for a closed account. */
  readonly email: string | null;
  readonly isOrganisation: boolean;
}

/** Changes by an operator. Absent members stay as they are. */
interface AccountChange {
  readonly isSuspended?: boolean | undefined;
  readonly isAdmin?: boolean | undefined;
}

interface AccountRepositoryOptions {
  readonly database: Database;
  readonly now: () => number;
  /** Called after a change or closure, and after a failed change that may have been stored. For caches of API keys. */
  readonly onChange: (accountId: string) => void;
}

export class AccountRepository {
  readonly #database: Database;
  readonly #now: () => number;
  readonly #onChange: (accountId: string) => void;

  constructor(options: AccountRepositoryOptions) {
    this.#database = options.database;
    this.#now = options.now;
    this.#onChange = options.onChange;
  }

  /** Returns the account of a user, which is created if absent. The account has the user's id. */
  async ensure(user: { readonly id: string; readonly name: string }): Promise<Account> {
    const found = await this.find(user.id);
    if (found !== null) return found;
    const row = { id: user.id, name: user.name, created_at: this.#now(), admin_since: null, suspended_at: null, deleted_at: null };
    await this.#database
      .insertInto('accounts')
      .values(row)
      .onConflict((conflict) => conflict.column('id').doNothing())
      .execute();
    return (await this.find(user.id)) ?? accountOfRow(row);
  }

  async find(id: string): Promise<Account | null> {
    const row = await this.#database.selectFrom('accounts').selectAll().where('id', '=', id).executeTakeFirst();
    return row === undefined ? null : accountOfRow(row);
  }

  /** Accounts with names and e-mail addresses, newest first. `text`: an id, or part of a name or address; null: all accounts. */
  async list(options: {
    readonly text: string | null;
    readonly limit: number;
    readonly after: { readonly at: number; readonly id: string } | null;
  }): Promise<ListedAccount[]> {
    let query = this.#listed();
    const { text, after } = options;
    if (text !== null) {
      const part = `%${text.toLowerCase().replace(/[\\%_]/g, '\\$&')}%`;
      const has = (column: 'auth_users.email' | 'auth_users.name' | 'accounts.name') =>
        sql<boolean>`lower(${sql.ref(column)}) like ${part} escape '\\'`;
      query = query.where((where) =>
        where.or([where('accounts.id', '=', text), has('auth_users.email'), has('auth_users.name'), has('accounts.name')]),
      );
    }
    if (after !== null) {
      query = query.where((where) => isAfterPosition(where, 'accounts.created_at', 'accounts.id', after));
    }
    const rows = await query.orderBy('accounts.created_at', 'desc').orderBy('accounts.id', 'desc').limit(options.limit).execute();
    return rows.map(listedOf);
  }

  async findListed(id: string): Promise<ListedAccount | null> {
    const row = await this.#listed().where('accounts.id', '=', id).executeTakeFirst();
    return row === undefined ? null : listedOf(row);
  }

  #listed() {
    return this.#database
      .selectFrom('accounts')
      .leftJoin('auth_users', 'auth_users.id', 'accounts.id')
      .leftJoin('organisations', 'organisations.account_id', 'accounts.id')
      .selectAll('accounts')
      .select(['auth_users.email', 'auth_users.name as user_name', 'organisations.created_by as organisation_creator']);
  }

  /** Suspends or reinstates an account. False: unknown or closed account. */
  async setSuspended(id: string, suspended: boolean): Promise<boolean> {
    return this.update(id, { isSuspended: suspended });
  }

  async setAdmin(id: string, admin: boolean): Promise<boolean> {
    return this.update(id, { isAdmin: admin });
  }

  /** False: unknown or closed account. The caller may pass `transact` to add writes of its own to the transaction. */
  async update(
    id: string,
    { isSuspended, isAdmin }: AccountChange,
    transact: (write: (transaction: Database) => Promise<void>) => Promise<void> = (write) => write(this.#database),
  ): Promise<boolean> {
    const now = this.#now();
    const values: Partial<Tables['accounts']> = {
      ...(isSuspended === undefined ? {} : { suspended_at: isSuspended ? now : null }),
      ...(isAdmin === undefined ? {} : { admin_since: isAdmin ? now : null }),
    };
    let isUpdated = false;
    try {
      await transact(async (transaction) => {
        const result = await transaction
          .updateTable('accounts')
          .set(values)
          .where('id', '=', id)
          .where('deleted_at', 'is', null)
          .executeTakeFirst();
        isUpdated = result.numUpdatedRows === 1n;
      });
    } finally {
      // Also after an error, which may follow the commit.
      this.#onChange(id);
    }
    return isUpdated;
  }

  /**
   * Closes an account permanently: revokes its keys and erases personal data ({@link eraseAccount}). Ledger postings stay.
   *
   * `within` adds the caller's writes to the transaction, after the account's row is locked. If `within` rejects, nothing is changed.
   */
  async close(id: string, within: (transaction: Database) => Promise<void> = async () => {}): Promise<void> {
    const now = this.#now();
    await this.#database.transaction().execute(async (transaction) => {
      await transaction.updateTable('accounts').set({ deleted_at: now, admin_since: null }).where('id', '=', id).execute();
      await within(transaction);
      await lockKeysOf(transaction, id);
      await transaction
        .updateTable('api_keys')
        .set({ revoked_at: now })
        .where('account_id', '=', id)
        .where('revoked_at', 'is', null)
        .execute();
      await eraseAccount(transaction, id);
    });
    this.#onChange(id);
  }
}

export function accountOfRow(row: Tables['accounts']): Account {
  return {
    id: row.id,
    name: row.name,
    createdAt: row.created_at,
    isAdmin: row.admin_since !== null,
    suspendedAt: row.suspended_at,
    deletedAt: row.deleted_at,
  };
}

interface ListedRow {
  readonly email: string | null;
  readonly user_name: string | null;
  readonly organisation_creator: string | null;
}

function listedOf(row: Tables['accounts'] & ListedRow): ListedAccount {
  const name = cleanName(row.user_name ?? row.name);
  return { ...accountOfRow(row), name, email: row.email, isOrganisation: row.organisation_creator !== null };
}

/**
 * Locks an account row until the end of the transaction. Serialises transactions that count an account's rows before they add one.
 *
 * No-op on SQLite, where a transaction holds the write lock of the whole database.
 */
export async function lockAccount(transaction: Database, accountId: string): Promise<void> {
  if (dialectOf(transaction) === 'sqlite') return;
  // `for update` would also block inserts into tables with a foreign key to the account.
  await transaction.selectFrom('accounts').select('id').where('id', '=', accountId).forNoKeyUpdate().execute();
}

/** Display name: that of the user, or for an organisation that of the account. Empty for an unknown account. */
export async function nameOfAccount(database: Database, accountId: string): Promise<string> {
  const row = await database
    .selectFrom('accounts')
    .leftJoin('auth_users', 'auth_users.id', 'accounts.id')
    .select(['accounts.name', 'auth_users.name as user_name'])
    .where('accounts.id', '=', accountId)
    .executeTakeFirst();
  // Cleaned here, because names of older rows were stored unchecked.
  return cleanName(row?.user_name ?? row?.name ?? '');
}

export async function isOwnedBy(database: Database, providerId: string, accountId: string): Promise<boolean> {
  const row = await database
    .selectFrom('provider_owners')
    .select('account_id')
    .where('provider_id', '=', providerId)
    .where('account_id', '=', accountId)
    .executeTakeFirst();
  return row !== undefined;
}

const ACCOUNT_PREFIX = 'account:';
const KEY_PREFIX = 'key:';

/**
 * Display names of operators, who are written in the audit log as `account:<id>` or `key:<id>`. Key of the result: that text.
 *
 * An account is named by the user's e-mail address. Deleted accounts and keys have no entry.
 */
export async function operatorNames(database: Database, operators: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const names = new Map<string, string>();
  const idsOf = (prefix: string) => operators.flatMap((text) => (text.startsWith(prefix) ? [text.slice(prefix.length)] : []));
  const [accounts, keys] = [idsOf(ACCOUNT_PREFIX), idsOf(KEY_PREFIX)];
  if (accounts.length > 0) {
    const rows = await database.selectFrom('auth_users').select(['id', 'email']).where('id', 'in', accounts).execute();
    for (const { id, email } of rows) names.set(ACCOUNT_PREFIX + id, email);
  }
  if (keys.length > 0) {
    const rows = await database.selectFrom('api_keys').select(['id', 'name', 'prefix']).where('id', 'in', keys).execute();
    for (const { id, name, prefix } of rows) names.set(KEY_PREFIX + id, `key ${name === '' ? `${prefix}…` : name}`);
  }
  return names;
}
