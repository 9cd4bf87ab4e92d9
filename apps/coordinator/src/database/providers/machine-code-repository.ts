/**
 * `MachineCodeRepository`: codes that link a provider to the owner whose session created the code. The presenting provider proves
 * its key.
 */
import { createHash, randomBytes } from 'node:crypto';
import { lockAccount } from '../accounts/account-repository.js';
import type { Database } from '../tables.js';

const MACHINE_CODE_LIFE_MS = 10 * 60_000;
/** Maximum codes per account. Beyond the maximum the oldest code ends. */
export const MAX_MACHINE_CODES = 100;

export class MachineCodeRepository {
  readonly #database: Database;
  readonly #now: () => number;

  constructor(options: { database: Database; now: () => number }) {
    this.#database = options.database;
    this.#now = options.now;
  }

  async create(accountId: string): Promise<{ readonly code: string; readonly expiresAt: number }> {
    const code = randomBytes(32).toString('base64url');
    const now = this.#now();
    const expiresAt = now + MACHINE_CODE_LIFE_MS;
    await this.#database.transaction().execute(async (transaction) => {
      await lockAccount(transaction, accountId);
      await transaction.deleteFrom('machine_codes').where('expires_at', '<', now).execute();
      const others = transaction
        .selectFrom('machine_codes')
        .select('hash')
        .where('account_id', '=', accountId)
        .orderBy('created_at', 'desc')
        .orderBy('hash')
        .limit(MAX_MACHINE_CODES - 1);
      await transaction.deleteFrom('machine_codes').where('account_id', '=', accountId).where('hash', 'not in', others).execute();
      await transaction
        .insertInto('machine_codes')
        .values({ hash: hashOf(code), account_id: accountId, created_at: now, expires_at: expiresAt, used_at: null })
        .execute();
    });
    return { code, expiresAt };
  }

  /** Redeems a code, once. Null: unknown, used or expired code, or closed or suspended account. */
  async redeem(code: string): Promise<string | null> {
    const now = this.#now();
    const hash = hashOf(code);
    const { numUpdatedRows } = await this.#database
      .updateTable('machine_codes')
      .set({ used_at: now })
      .where('hash', '=', hash)
      .where('used_at', 'is', null)
      .where('expires_at', '>', now)
      .executeTakeFirst();
    if (numUpdatedRows !== 1n) return null;
    const row = await this.#database
      .selectFrom('machine_codes')
      .innerJoin('accounts', 'accounts.id', 'machine_codes.account_id')
      .select('account_id')
      .where('hash', '=', hash)
      .where('deleted_at', 'is', null)
      .where('suspended_at', 'is', null)
      .executeTakeFirst();
    return row?.account_id ?? null;
  }
}

function hashOf(code: string): string {
  return createHash('sha256').update(code).digest('hex');
}
