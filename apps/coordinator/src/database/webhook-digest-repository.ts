/** `WebhookDigestRepository`: handled webhook events, shared by all coordinators of this database. */
import { sql } from 'kysely';
import { databaseTime } from './connection/database-clock.js';
import type { Database } from './tables.js';

export class WebhookDigestRepository {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Records an event. False: a coordinator has handled the event before. */
  async add(digest: string, lifetimeMs: number): Promise<boolean> {
    const { numInsertedOrUpdatedRows } = await this.#database
      .insertInto('webhook_digests')
      .values({ digest, expires_at: sql<number>`${databaseTime(this.#database)} + ${sql.lit(lifetimeMs)}` })
      .onConflict((conflict) => conflict.column('digest').doNothing())
      .executeTakeFirstOrThrow();
    return numInsertedOrUpdatedRows === 1n;
  }

  /** Removes events that are refused for their age anyway. */
  async prune(): Promise<void> {
    await this.#database.deleteFrom('webhook_digests').where('expires_at', '<', databaseTime(this.#database)).execute();
  }
}
