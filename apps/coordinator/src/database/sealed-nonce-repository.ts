/** Nonces of sealed requests that any coordinator of this database has taken: a sealed request counts once, also after a restart. */
import { sql } from 'kysely';
import { databaseTime } from './connection/database-clock.js';
import type { Database } from './tables.js';

/** Maximum nonces per statement. */
const MAX_BATCH = 500;

interface WaitingNonce {
  readonly digest: string;
  readonly lifetimeMs: number;
  readonly resolve: (isNew: boolean) => void;
  readonly reject: (error: unknown) => void;
}

export class SealedNonceRepository {
  readonly #database: Database;
  /** Bounded by the concurrent requests. */
  readonly #waiting: WaitingNonce[] = [];
  #isInserting = false;

  constructor(database: Database) {
    this.#database = database;
  }

  /**
   * Records a nonce by its digest for `lifetimeMs`. False: the nonce was taken before. Nonces that come during a statement share the
   * next one. Rejects with the database's error.
   */
  add(digest: string, lifetimeMs: number): Promise<boolean> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ digest, lifetimeMs, resolve, reject });
      if (!this.#isInserting) void this.#insertWaiting();
    });
  }

  /** Removes nonces of requests that have expired. */
  async prune(): Promise<void> {
    await this.#database.deleteFrom('sealed_nonces').where('expires_at', '<', databaseTime(this.#database)).execute();
  }

  async #insertWaiting(): Promise<void> {
    this.#isInserting = true;
    while (this.#waiting.length > 0) {
      // In one order everywhere, so that statements of two coordinators cannot deadlock.
      const batch = this.#waiting.splice(0, MAX_BATCH).sort((a, b) => (a.digest < b.digest ? -1 : 1));
      try {
        const inserted = await this.#insert(batch);
        for (const { digest, resolve } of batch) resolve(inserted.delete(digest));
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    this.#isInserting = false;
  }

  /** Digests that were not in the table before. */
  async #insert(batch: readonly WaitingNonce[]): Promise<Set<string>> {
    const time = databaseTime(this.#database);
    const rows = await this.#database
      .insertInto('sealed_nonces')
      .values(batch.map(({ digest, lifetimeMs }) => ({ digest, expires_at: sql<number>`${time} + ${sql.lit(Math.ceil(lifetimeMs))}` })))
      .onConflict((conflict) => conflict.column('digest').doNothing())
      .returning('digest')
      .execute();
    return new Set(rows.map(({ digest }) => digest));
  }
}
