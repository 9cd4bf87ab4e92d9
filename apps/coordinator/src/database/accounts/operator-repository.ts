/** `OperatorRepository`: queries of the command `admin`, which creates and lists operators: accounts with the admin flag. */
import { cleanName } from '@inference/protocol';
import { dialectOf } from '../connection/dialect.js';
import type { Database } from '../tables.js';

export interface Operator {
  readonly accountId: string;
  /** Null: an organisation, which has no sign-in of its own. */
  readonly email: string | null;
  readonly name: string;
  /** Milliseconds since 1970. */
  readonly adminSince: number;
  readonly isSuspended: boolean;
}

export class OperatorRepository {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Finds a user by e-mail address, in any letter case. `isVerified`: the person confirmed the address. */
  async findUser(email: string): Promise<{ readonly id: string; readonly name: string; readonly isVerified: boolean } | null> {
    const row = await this.#database
      .selectFrom('auth_users')
      .select(['id', 'name', 'email_verified'])
      .where('email', '=', email.toLowerCase())
      .executeTakeFirst();
    return row === undefined ? null : { id: row.id, name: row.name, isVerified: Boolean(row.email_verified) };
  }

  /** Accounts with the admin flag, in the order in which they got it. */
  async list(): Promise<Operator[]> {
    const rows = await this.#database
      .selectFrom('accounts')
      .leftJoin('auth_users', 'auth_users.id', 'accounts.id')
      .select(['accounts.id', 'accounts.name', 'auth_users.name as user_name', 'auth_users.email', 'admin_since', 'suspended_at'])
      .where('admin_since', 'is not', null)
      .where('deleted_at', 'is', null)
      .orderBy('admin_since')
      .execute();
    return rows.map((row) => ({
      accountId: row.id,
      email: row.email,
      name: cleanName(row.user_name ?? row.name),
      adminSince: row.admin_since ?? 0,
      isSuspended: row.suspended_at !== null,
    }));
  }

  /** Marks a new user's e-mail address as confirmed, and deletes the session that the sign-up has created. */
  async confirmSignUp(userId: string): Promise<void> {
    const isPostgres = dialectOf(this.#database) === 'postgres';
    await this.#database.transaction().execute(async (transaction) => {
      await transaction
        .updateTable('auth_users')
        .set({ email_verified: isPostgres ? true : 1 })
        .where('id', '=', userId)
        .execute();
      await transaction.deleteFrom('auth_sessions').where('user_id', '=', userId).execute();
    });
  }
}
