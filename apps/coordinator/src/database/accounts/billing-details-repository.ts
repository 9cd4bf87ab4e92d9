/** `BillingDetailsRepository`: customer name, address and tax ID of an account, printed on its deposit receipts. */
import type { Database } from '../tables.js';

export interface BillingDetails {
  readonly name: string | null;
  /** Lines separated by `\n`. */
  readonly address: string | null;
  readonly taxId: string | null;
}

export class BillingDetailsRepository {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async find(accountId: string): Promise<BillingDetails> {
    const row = await this.#database
      .selectFrom('billing_details')
      .select(['name', 'address', 'tax_id'])
      .where('account_id', '=', accountId)
      .executeTakeFirst();
    return { name: row?.name ?? null, address: row?.address ?? null, taxId: row?.tax_id ?? null };
  }

  async set(accountId: string, { name, address, taxId }: BillingDetails): Promise<void> {
    const columns = { name, address, tax_id: taxId };
    await this.#database
      .insertInto('billing_details')
      .values({ account_id: accountId, ...columns })
      .onConflict((conflict) => conflict.column('account_id').doUpdateSet(columns))
      .execute();
  }
}
