/** `KeysetRepository`: published keysets. Every coordinator of this database serves the same bytes, and epochs grow over restarts. */
import type { Database } from './tables.js';

export interface StoredKeyset {
  readonly epoch: number;
  /** JSON of the keyset, as served. */
  readonly body: string;
  /** Milliseconds. */
  readonly issuedAt: number;
}

/** Number of stored keysets; only the newest is served. */
const RETAINED_KEYSETS = 2;

export class KeysetRepository {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Null: none was published yet. */
  async newest(): Promise<StoredKeyset | null> {
    const row = await this.#database.selectFrom('e2e_keysets').selectAll().orderBy('epoch', 'desc').limit(1).executeTakeFirst();
    return row === undefined ? null : { epoch: Number(row.epoch), body: row.body, issuedAt: Number(row.issued_at) };
  }

  /** False: another coordinator has published this epoch. */
  async publish({ epoch, body, issuedAt }: StoredKeyset): Promise<boolean> {
    const { numInsertedOrUpdatedRows } = await this.#database
      .insertInto('e2e_keysets')
      .values({ epoch, body, issued_at: issuedAt })
      .onConflict((conflict) => conflict.column('epoch').doNothing())
      .executeTakeFirstOrThrow();
    if (numInsertedOrUpdatedRows !== 1n) return false;
    await this.#database
      .deleteFrom('e2e_keysets')
      .where('epoch', '<=', epoch - RETAINED_KEYSETS)
      .execute();
    return true;
  }
}
