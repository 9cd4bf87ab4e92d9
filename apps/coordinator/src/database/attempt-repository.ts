/**
 * `AttemptRepository`: counters in the database, by which all coordinators of a cluster together limit attempts such as sign-ins.
 *
 * A name, such as an e-mail address, is stored as a keyed hash. Time windows follow the database's clock.
 */
import { createHmac } from 'node:crypto';
import { type RawBuilder, sql } from 'kysely';
import type { AttemptCounter, AttemptCounters, RecentNames } from '../limits/attempt-counters.js';
import { databaseTime } from './connection/database-clock.js';
import type { Database } from './tables.js';

/** Name of the row in `secrets` with the key of the name hashes. */
export const ATTEMPT_NAMES_SECRET = 'attempt-names';

interface AttemptRepositoryOptions {
  readonly database: Database;
  /** Key of the name hashes. */
  readonly secret: Uint8Array;
  /** Receives errors of refunds and of added names. The request goes on without them. */
  readonly onWriteError: (error: unknown) => void;
}

export class AttemptRepository implements AttemptCounters {
  readonly #options: AttemptRepositoryOptions;
  readonly #now: RawBuilder<number>;

  constructor(options: AttemptRepositoryOptions) {
    this.#options = options;
    this.#now = databaseTime(options.database);
  }

  counter(limit: string, { maxAttempts, windowMs }: { readonly maxAttempts: number; readonly windowMs: number }): AttemptCounter {
    const { database, onWriteError } = this.#options;
    return {
      count: async (name) => {
        const row = this.#nameOf(limit, name);
        if (await this.#increment(row, maxAttempts, windowMs)) return null;
        const end = await database
          .selectFrom('attempt_counts')
          .select(sql<number>`expires_at - ${this.#now}`.as('waitMs'))
          .where('name', '=', row)
          .executeTakeFirst();
        return Math.min(Math.ceil(windowMs / 1000), Math.max(1, Math.ceil((end?.waitMs ?? 0) / 1000)));
      },
      refund: async (name) => {
        await database
          .updateTable('attempt_counts')
          .set((set) => ({ count: set('count', '-', 1) }))
          .where('name', '=', this.#nameOf(limit, name))
          .where('count', '>', 0)
          .execute()
          .catch(onWriteError);
      },
    };
  }

  recentNames(list: string, { lifetimeMs }: { readonly lifetimeMs: number }): RecentNames {
    const { database, onWriteError } = this.#options;
    return {
      has: async (name) => {
        const row = await database
          .selectFrom('attempt_counts')
          .select('name')
          .where('name', '=', this.#nameOf(list, name))
          .where('expires_at', '>', this.#now)
          .executeTakeFirst();
        return row !== undefined;
      },
      add: async (name) => {
        const expiresAt = sql<number>`${this.#now} + ${sql.lit(lifetimeMs)}`;
        await database
          .insertInto('attempt_counts')
          .values({ name: this.#nameOf(list, name), count: 1, expires_at: expiresAt })
          .onConflict((conflict) => conflict.column('name').doUpdateSet({ expires_at: expiresAt }))
          .execute()
          .catch(onWriteError);
      },
    };
  }

  /** Removes counters of past windows. */
  async prune(): Promise<void> {
    await this.#options.database.deleteFrom('attempt_counts').where('expires_at', '<', this.#now).execute();
  }

  /** Counts in one statement, which locks the row. False: the maximum is reached, and nothing was counted. */
  async #increment(name: string, maxAttempts: number, windowMs: number): Promise<boolean> {
    if (maxAttempts <= 0) return false;
    const now = this.#now;
    const window = sql.lit(windowMs);
    // After the clock was set back, an expiry may be far ahead. It counts as past, so that the name is not locked out for long.
    const isOver = sql<boolean>`(attempt_counts.expires_at <= ${now} or attempt_counts.expires_at > ${now} + 2 * ${window})`;
    const { numInsertedOrUpdatedRows } = await this.#options.database
      .insertInto('attempt_counts')
      .values({ name, count: 1, expires_at: sql<number>`${now} + ${window}` })
      .onConflict((conflict) =>
        conflict
          .column('name')
          .doUpdateSet({
            count: sql<number>`case when ${isOver} then 1 else attempt_counts.count + 1 end`,
            expires_at: sql<number>`case when ${isOver} then excluded.expires_at else attempt_counts.expires_at end`,
          })
          .where(sql<boolean>`(${isOver} or attempt_counts.count < ${sql.lit(maxAttempts)})`),
      )
      .executeTakeFirstOrThrow();
    return numInsertedOrUpdatedRows === 1n;
  }

  #nameOf(limit: string, name: string): string {
    return createHmac('sha256', this.#options.secret).update(`${limit}\0${name}`).digest('hex');
  }
}
