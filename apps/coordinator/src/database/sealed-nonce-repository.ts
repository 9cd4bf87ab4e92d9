/** Nonces of sealed requests, shared by all coordinators of this database, so that a request counts once. */
import type { JobId } from '@inference/protocol';
import { sql } from 'kysely';
import { databaseTime } from './connection/database-clock.js';
import { IdQuery, statementWriter } from './connection/prepared-statements.js';
import type { Database } from './tables.js';

/** Nonce of one sealed request, taken by its job. */
export interface SealedNonce {
  /** Hexadecimal SHA-256 of account and nonce. */
  readonly digest: string;
  readonly jobId: JobId;
  /** Time from now for which a replay must be recognised, in milliseconds. */
  readonly lifetimeMs: number;
}

/** Maximum expired nonces per delete statement, because a statement blocks other writers. */
const PRUNED_PER_STATEMENT = 1000;

/** Statements are compiled once per instance, so each database needs its own. */
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
          // An update without effect, because only then does the statement return the stored row.
          .onConflict((conflict) => conflict.column('digest').doUpdateSet((set) => ({ expires_at: set.ref('sealed_nonces.expires_at') })))
          .returning(['digest', 'job_id'])
          .compile().sql
      );
    },
  );
  readonly #delete = new IdQuery<never>((database, digests) => database.deleteFrom('sealed_nonces').where('digest', 'in', digests));

  /**
   * Takes new nonces. Waits for concurrent transactions with the same nonces.
   *
   * @param nonces One per digest.
   * @returns The job that took each digest, now or before; null: of an earlier version.
   */
  async take(transaction: Database, nonces: Iterable<SealedNonce>): Promise<ReadonlyMap<string, JobId | null>> {
    // Same order everywhere, so that transactions of two coordinators cannot deadlock.
    const sorted = [...nonces].sort((a, b) => (a.digest < b.digest ? -1 : 1));
    const rows = (await this.#insert.write(transaction, sorted)) as { readonly digest: string; readonly job_id: JobId | null }[];
    return new Map(rows.map(({ digest, job_id }) => [digest, job_id]));
  }

  /** Returns nonces that this transaction took. */
  async giveBack(transaction: Database, digests: readonly string[]): Promise<void> {
    if (digests.length > 0) await this.#delete.read(transaction, digests);
  }
}

/** Removes nonces of requests that have expired, in pieces. */
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
