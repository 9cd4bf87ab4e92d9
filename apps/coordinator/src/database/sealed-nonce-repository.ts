/** Nonces of sealed requests that any coordinator of this database has taken: a sealed request counts once, also after a restart. */
import { sql } from 'kysely';
import { databaseTime } from './connection/database-clock.js';
import type { Database } from './tables.js';

export class SealedNonceRepository {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Records a nonce by its digest for `lifetimeMs`. False: the nonce was taken before. */
  async add(digest: string, lifetimeMs: number): Promise<boolean> {
    const { numInsertedOrUpdatedRows } = await this.#database
      .insertInto('sealed_nonces')
      .values({ digest, expires_at: sql<number>`${databaseTime(this.#database)} + ${sql.lit(Math.ceil(lifetimeMs))}` })
      .onConflict((conflict) => conflict.column('digest').doNothing())
      .executeTakeFirstOrThrow();
    return numInsertedOrUpdatedRows === 1n;
  }

  /** Removes nonces of requests that have expired. */
  async prune(): Promise<void> {
    await this.#database.deleteFrom('sealed_nonces').where('expires_at', '<', databaseTime(this.#database)).execute();
  }
}
