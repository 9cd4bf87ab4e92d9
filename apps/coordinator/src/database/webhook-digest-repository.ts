/**
 * `WebhookDigestRepository`: SHA-256 digests of accepted webhooks about device management, so that a cluster accepts each only once.
 *
 * Events of the payment processor are in `PaymentRepository`.
 */
import { type RawBuilder, sql } from 'kysely';
import { databaseTime } from './connection/database-clock.js';
import type { Database } from './tables.js';

export class WebhookDigestRepository {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Records an event for `lifetimeMs`, before it is handled. False: the event has a record that has not expired. */
  async add(digest: string, lifetimeMs: number): Promise<boolean> {
    const { numInsertedOrUpdatedRows } = await this.#database
      .insertInto('webhook_digests')
      .values({ digest, expires_at: this.#timeIn(lifetimeMs) })
      .onConflict((conflict) =>
        conflict
          .column('digest')
          .doUpdateSet((set) => ({ expires_at: set.ref('excluded.expires_at') }))
          .where('webhook_digests.expires_at', '<', databaseTime(this.#database)),
      )
      .executeTakeFirstOrThrow();
    return numInsertedOrUpdatedRows === 1n;
  }

  /** Records a handled event for `lifetimeMs` from now, even if its first record has expired. */
  async extend(digest: string, lifetimeMs: number): Promise<void> {
    await this.#database
      .insertInto('webhook_digests')
      .values({ digest, expires_at: this.#timeIn(lifetimeMs) })
      .onConflict((conflict) => conflict.column('digest').doUpdateSet((set) => ({ expires_at: set.ref('excluded.expires_at') })))
      .execute();
  }

  async remove(digest: string): Promise<void> {
    await this.#database.deleteFrom('webhook_digests').where('digest', '=', digest).execute();
  }

  /** Removes expired digests. */
  async prune(): Promise<void> {
    await this.#database.deleteFrom('webhook_digests').where('expires_at', '<', databaseTime(this.#database)).execute();
  }

  #timeIn(milliseconds: number): RawBuilder<number> {
    return sql<number>`${databaseTime(this.#database)} + ${sql.lit(milliseconds)}`;
  }
}
