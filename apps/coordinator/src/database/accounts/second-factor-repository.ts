/** `SecondFactorRepository`: lets operators see a user's passkeys and two-factor authentication, and disable the latter. */
import { sql } from 'kysely';
import type { Database } from '../tables.js';

export interface SecondFactors {
  readonly isTwoFactorEnabled: boolean;
  readonly passkeyCount: number;
}

export class SecondFactorRepository {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async find(userId: string): Promise<SecondFactors> {
    const user = await this.#database.selectFrom('auth_users').select('two_factor_enabled').where('id', '=', userId).executeTakeFirst();
    const { passkeys } = await this.#database
      .selectFrom('auth_passkeys')
      .select(({ fn }) => fn.countAll<number>().as('passkeys'))
      .where('user_id', '=', userId)
      .executeTakeFirstOrThrow();
    return { isTwoFactorEnabled: Boolean(user?.two_factor_enabled), passkeyCount: Number(passkeys) };
  }

  /**
   * Disables two-factor authentication. Passkeys stay. Also ends pending sign-ins, and removes trusted browsers.
   *
   * @returns Whether two-factor authentication was enabled.
   */
  async disableTwoFactor(userId: string): Promise<boolean> {
    return this.#database.transaction().execute(async (transaction) => {
      const user = await transaction.selectFrom('auth_users').select('two_factor_enabled').where('id', '=', userId).executeTakeFirst();
      await transaction.deleteFrom('auth_two_factors').where('user_id', '=', userId).execute();
      await sql`update auth_users set two_factor_enabled = false where id = ${userId}`.execute(transaction);
      await transaction.deleteFrom('auth_verifications').where('value', '=', userId).execute();
      return Boolean(user?.two_factor_enabled);
    });
  }
}
