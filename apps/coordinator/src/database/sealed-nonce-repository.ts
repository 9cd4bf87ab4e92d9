/** `SealedNonceRepository`: nonces of accepted sealed (end-to-end encrypted) requests, by which all coordinators recognise replays. */
import type { JobId } from '@inference/protocol';
import { sql } from 'kysely';
import { IdQuery, statementWriter } from './connection/batch-statements.js';
import { databaseTime } from './connection/database-clock.js';
import type { Database } from './tables.js';

/** Nonce of one sealed request, with the job that uses it. */
export interface SealedNonce {
  /** Hexadecimal SHA-256 of account and nonce. */
  readonly digest: string;
  readonly jobId: JobId;
  /** Time from now in which a replay must be recognised. */
  readonly lifetimeMs: number;
}

/** Maximum expired nonces per delete statement, because a statement blocks other writers on SQLite. */
const PRUNED_PER_STATEMENT = 1000;

/** An instance caches SQL compiled for its first database, so each database needs its own instance. */
export class SealedNonceRepository {
  readonly #insert = statementWriter<SealedNonce>(
    ({ digest, jobId, lifetimeMs }, parameters) => {
      parameters.push(digest, jobId, Math.ceil(lifetimeMs));
    },
    (database, size) => {
      const row = { digest: '', job_id: '', expires_at: sql<number>`${databaseTime(database)} + ${0}` };
      const insert = database.insertInto('sealed_nonces').values(Array.from({ length: size }, () => row));
      return (
        insert
          // An update without effect, because `do nothing` would not return the stored row.
          .onConflict((conflict) => conflict.column('digest').doUpdateSet((set) => ({ expires_at: set.ref('sealed_nonces.expires_at') })))
          .returning(['digest', 'job_id'])
          .compile().sql
      );
    },
  );
  readonly #delete = new IdQuery<never>((database, digests) => database.deleteFrom('sealed_nonces').where('digest', 'in', digests));

  /**
   * Stores new nonces. Waits for concurrent transactions with the same nonces.
   *
   * @param nonces At most one per digest.
   * @returns For each digest, the job that used it first; null: stored by an earlier version.
   */
  async take(transaction: Database, nonces: Iterable<SealedNonce>): Promise<ReadonlyMap<string, JobId | null>> {
    // Sorted, so that transactions of two coordinators cannot deadlock.
    const sorted = [...nonces].sort((a, b) => (a.digest < b.digest ? -1 : 1));
    const rows = (await this.#insert.write(transaction, sorted)) as { readonly digest: string; readonly job_id: JobId | null }[];
    return new Map(rows.map(({ digest, job_id }) => [digest, job_id]));
  }

  /** Deletes nonces that this transaction has stored, because their jobs do not run. */
  async giveBack(transaction: Database, digests: readonly string[]): Promise<void> {
    if (digests.length > 0) await this.#delete.read(transaction, digests);
  }
}

export async function pruneSealedNonces(database: Database): Promise<void> {
  for (;;) {
    const expired = database
      .selectFrom('sealed_nonces')
      .select('digest')
      .where('expires_at', '<', databaseTime(database))
      .orderBy('expires_at')
      .limit(PRUNED_PER_STATEMENT);
    const { numDeletedRows } = await database.deleteFrom('sealed_nonces').where('digest', 'in', expired).executeTakeFirstOrThrow();
    if (numDeletedRows < PRUNED_PER_STATEMENT) return;
  }
}
