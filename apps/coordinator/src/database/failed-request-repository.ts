/**
 * `FailedRequestRepository`: failed requests of accounts, without content. Batched writes; the newest rows are retained, up to
 * maximums.
 */
import { rowWriter } from './connection/prepared-statements.js';
import type { RequestFilter } from './request-list-repository.js';
import type { Database, Tables } from './tables.js';
import { DAY_MS, keysOf } from './usage-repository.js';
import { type WriteBacklog, WriteBehindQueue } from './write-behind-queue.js';

interface FailedRequest {
  readonly jobId: string;
  readonly accountId: string;
  readonly keyId: string;
  /** Null: no model of the network. */
  readonly model: string | null;
  readonly endpoint: string;
  /** The last provider that tried; null: none did. */
  readonly providerId: string | null;
  readonly isSealed: boolean;
  /** Row of the error table, of this version or another. */
  readonly code: string;
  readonly latencyMs: number;
  /** Milliseconds since 1970. */
  readonly failedAt: number;
}

/** `keyName` is null if the key's row was deleted. */
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
const MAX_STORED = 200_000;
/** Bounds what one account can push out of the total. */
const MAX_STORED_PER_ACCOUNT = 2_000;
const MAX_WAITING = 20_000;
/** Number of writes between removals of rows beyond the maximum. */
const TRIM_EVERY = 50;

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
  /** Accounts with new rows since the last removal. */
  readonly #grown = new Set<string>();
  #writes = 0;

  constructor(options: FailedRequestRepositoryOptions) {
    const { database, writeEveryMs = WRITE_EVERY_MS, onWriteError } = options;
    this.#database = database;
    this.#maxRows = options.maxRows ?? MAX_STORED;
    this.#maxRowsPerAccount = options.maxRowsPerAccount ?? MAX_STORED_PER_ACCOUNT;
    this.#rows = new WriteBehindQueue({
      write: (piece) =>
        this.#writer.write(
          database,
          piece.map(([, request]) => toRow(request)),
        ),
      onWritten: async () => {
        if (this.#writes++ % TRIM_EVERY === 0) await this.#trim();
      },
      onWriteError,
      everyMs: writeEveryMs,
      perWrite: ROWS_PER_WRITE,
      maxWaiting: MAX_WAITING,
    });
  }

  add(request: FailedRequest): void {
    this.#rows.put(request.jobId, request);
    this.#grown.add(request.accountId);
  }

  /** Newest first, queued rows of this coordinator included: at most `limit` requests after `after`. */
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
      // Implied by the second condition, and usable by the index.
      query = query
        .where('failed_at', '<=', after.at)
        .where((where) => where.or([where('failed_at', '<', after.at), where('job_id', '<', after.id)]));
    }
    const rows = await query.orderBy('failed_at', 'desc').orderBy('job_id', 'desc').limit(limit).execute();
    return rows.map(fromRow);
  }

  /** The failed request with this id, if it belongs to the account. */
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

  async #trim(): Promise<void> {
    const grown = [...this.#grown];
    this.#grown.clear();
    for (const accountId of grown) {
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

/** Removes requests that failed before a time (milliseconds). */
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
