/**
 * `FailedRequestRepository`: requests that were answered with an error, without prompts and outputs, for the console.
 *
 * Rows are queued in memory and written in batches. From time to time, the oldest above a maximum per account and in total are removed.
 */

import { DAY_MS } from '../time-units.js';
import { rowWriter } from './connection/batch-statements.js';
import type { RequestFilter } from './request-list-repository.js';
import type { Database, Tables } from './tables.js';
import { keysOf } from './usage-repository.js';
import { type WriteBacklog, WriteBehindQueue } from './write-behind-queue.js';

interface FailedRequest {
  readonly jobId: string;
  readonly accountId: string;
  readonly keyId: string;
  /** Null: the request named no model that the network knows. */
  readonly model: string | null;
  readonly endpoint: string;
  /** Provider of the last attempt; null: there was no attempt. */
  readonly providerId: string | null;
  readonly isSealed: boolean;
  /** Error code of `ERRORS` in packages/formats. Another version of the coordinator may have written a code unknown here. */
  readonly code: string;
  readonly latencyMs: number;
  /** Milliseconds since 1970. */
  readonly failedAt: number;
}

/** `keyName`: null if the API key no longer exists. */
export type ListedFailure = FailedRequest & { readonly keyName: string | null };

interface FailedRequestRepositoryOptions {
  readonly database: Database;
  readonly maxRows?: number;
  readonly maxRowsPerAccount?: number;
  readonly writeEveryMs?: number;
  readonly onWriteError: (error: unknown) => void;
}

const ROWS_PER_WRITE = 32;
const WRITE_EVERY_MS = 500;
const MAX_ROWS = 200_000;
/** Maximum rows per account, so that one account cannot displace the rows of others. */
const MAX_ROWS_PER_ACCOUNT = 2_000;
const MAX_WAITING_ROWS = 20_000;
/** Number of flushes after which rows above the maximums are removed. */
const FLUSHES_PER_TRIM = 50;

export class FailedRequestRepository {
  readonly #database: Database;
  readonly #maxRows: number;
  readonly #maxRowsPerAccount: number;
  readonly #writer = rowWriter(
    'failed_requests',
    ['job_id', 'account_id', 'api_key_id', 'model', 'endpoint', 'provider_id', 'is_sealed', 'code', 'latency_ms', 'failed_at'],
    (insert) => insert.onConflict((conflict) => conflict.column('job_id').doNothing()),
  );
  readonly #rows: WriteBehindQueue<string, FailedRequest>;
  readonly #accountsToTrim = new Set<string>();
  #flushCount = 0;

  constructor(options: FailedRequestRepositoryOptions) {
    const { database, writeEveryMs = WRITE_EVERY_MS, onWriteError } = options;
    this.#database = database;
    this.#maxRows = options.maxRows ?? MAX_ROWS;
    this.#maxRowsPerAccount = options.maxRowsPerAccount ?? MAX_ROWS_PER_ACCOUNT;
    this.#rows = new WriteBehindQueue({
      write: (piece) =>
        this.#writer.write(
          database,
          piece.map(([, request]) => toRow(request)),
        ),
      onWritten: async () => {
        if (this.#flushCount++ % FLUSHES_PER_TRIM === 0) await this.#trim();
      },
      onWriteError,
      everyMs: writeEveryMs,
      perWrite: ROWS_PER_WRITE,
      maxWaiting: MAX_WAITING_ROWS,
    });
  }

  add(request: FailedRequest): void {
    this.#rows.put(request.jobId, request);
    this.#accountsToTrim.add(request.accountId);
  }

  /** At most `limit` requests after the position `after`, newest first. Writes queued rows before the query. */
  async list(
    { accountId, range, model, key }: RequestFilter,
    { limit, after }: { readonly limit: number; readonly after: { readonly at: number; readonly id: string } | null },
  ): Promise<ListedFailure[]> {
    await this.#rows.flush();
    let query = this.#select(accountId)
      .where('failed_at', '>=', range.from * DAY_MS)
      .where('failed_at', '<', (range.to + 1) * DAY_MS);
    if (model !== null) query = query.where('model', '=', model);
    if (key !== null) query = query.where('api_key_id', 'in', keysOf(this.#database, accountId, key));
    if (after !== null) {
      // Both conditions together select the later positions. The first can use the index.
      query = query
        .where('failed_at', '<=', after.at)
        .where((where) => where.or([where('failed_at', '<', after.at), where('job_id', '<', after.id)]));
    }
    const rows = await query.orderBy('failed_at', 'desc').orderBy('job_id', 'desc').limit(limit).execute();
    return rows.map(fromRow);
  }

  /** Null: no such failed request, or of another account. Writes queued rows before the query. */
  async find(accountId: string, jobId: string): Promise<ListedFailure | null> {
    await this.#rows.flush();
    const row = await this.#select(accountId).where('job_id', '=', jobId).executeTakeFirst();
    return row === undefined ? null : fromRow(row);
  }

  get backlog(): WriteBacklog {
    return this.#rows.backlog;
  }

  /** Writes queued rows. Never rejects. */
  flush(): Promise<void> {
    return this.#rows.flush();
  }

  close(): Promise<void> {
    return this.#rows.close();
  }

  #select(accountId: string) {
    return this.#database
      .selectFrom('failed_requests')
      .leftJoin('api_keys', 'api_keys.id', 'failed_requests.api_key_id')
      .selectAll('failed_requests')
      .select('api_keys.name as key_name')
      .where('failed_requests.account_id', '=', accountId);
  }

  /** Removes the oldest rows above both maximums. */
  async #trim(): Promise<void> {
    const accountIds = [...this.#accountsToTrim];
    this.#accountsToTrim.clear();
    for (const accountId of accountIds) {
      const boundary = await this.#newest().where('account_id', '=', accountId).offset(this.#maxRowsPerAccount).executeTakeFirst();
      if (boundary === undefined) continue;
      await this.#database
        .deleteFrom('failed_requests')
        .where('account_id', '=', accountId)
        .where('failed_at', '<=', boundary.failed_at)
        .execute();
    }
    const boundary = await this.#newest().offset(this.#maxRows).executeTakeFirst();
    if (boundary !== undefined) await pruneFailedRequests(this.#database, boundary.failed_at + 1);
  }

  #newest() {
    return this.#database.selectFrom('failed_requests').select('failed_at').orderBy('failed_at', 'desc').limit(1);
  }
}

/** Removes requests that failed before a time in milliseconds since 1970. */
export async function pruneFailedRequests(database: Database, before: number): Promise<void> {
  await database.deleteFrom('failed_requests').where('failed_at', '<', before).execute();
}

function toRow(request: FailedRequest): Tables['failed_requests'] {
  return {
    job_id: request.jobId,
    account_id: request.accountId,
    api_key_id: request.keyId,
    model: request.model,
    endpoint: request.endpoint,
    provider_id: request.providerId,
    is_sealed: request.isSealed ? 1 : 0,
    code: request.code,
    latency_ms: request.latencyMs,
    failed_at: request.failedAt,
  };
}

function fromRow(row: Tables['failed_requests'] & { readonly key_name: string | null }): ListedFailure {
  return {
    jobId: row.job_id,
    accountId: row.account_id,
    keyId: row.api_key_id,
    keyName: row.key_name,
    model: row.model,
    endpoint: row.endpoint,
    providerId: row.provider_id,
    isSealed: row.is_sealed === 1,
    code: row.code,
    latencyMs: row.latency_ms,
    failedAt: row.failed_at,
  };
}
