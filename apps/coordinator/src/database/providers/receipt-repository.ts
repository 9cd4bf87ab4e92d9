/**
 * `ReceiptRepository`: signed receipts of jobs (hashes, usage and times), which the paying account can fetch later.
 *
 * Rows are queued in memory and written in batches. The oldest rows above a maximum are removed from time to time.
 */
import { rowWriter } from '../connection/batch-statements.js';
import type { Database, Tables } from '../tables.js';
import { type WriteBacklog, WriteBehindQueue } from '../write-behind-queue.js';

export interface StoredReceipt {
  readonly jobId: string;
  readonly accountId: string;
  /** base64url of the signed payload. */
  readonly receipt: string;
  /** base64 of the signature over the receipt. */
  readonly receiptSignature: string;
  /** base64 of the signature over the response hash. */
  readonly responseSignature: string;
  readonly createdAt: number;
}

interface ReceiptRepositoryOptions {
  readonly database: Database;
  readonly maxRows?: number;
  readonly writeEveryMs?: number;
  readonly onWriteError: (error: unknown) => void;
}

/** Maximum rows per write. On SQLite, a larger write would block this thread, and so delay streams. */
const ROWS_PER_WRITE = 32;
const WRITE_EVERY_MS = 500;
const MAX_STORED = 200_000;
const MAX_WAITING = 20_000;
/** Number of flushes after which old rows are removed. */
const TRIM_EVERY = 50;

export class ReceiptRepository {
  readonly #database: Database;
  readonly #maxRows: number;
  readonly #writer = rowWriter(
    'receipts',
    ['job_id', 'account_id', 'receipt', 'receipt_signature', 'response_signature', 'created_at'],
    (insert) => insert.onConflict((conflict) => conflict.column('job_id').doNothing()),
  );
  readonly #rows: WriteBehindQueue<string, StoredReceipt>;
  #writes = 0;

  constructor({ database, maxRows = MAX_STORED, writeEveryMs = WRITE_EVERY_MS, onWriteError }: ReceiptRepositoryOptions) {
    this.#database = database;
    this.#maxRows = maxRows;
    this.#rows = new WriteBehindQueue({
      write: (piece) =>
        this.#writer.write(
          database,
          piece.map(([, receipt]) => toRow(receipt)),
        ),
      onWritten: () => this.#trimSometimes(),
      onWriteError,
      everyMs: writeEveryMs,
      perWrite: ROWS_PER_WRITE,
      maxWaiting: MAX_WAITING,
    });
  }

  add(receipt: StoredReceipt): void {
    this.#rows.put(receipt.jobId, receipt);
  }

  /** Receipt of a job; null: none is stored, or the job belongs to another account. */
  async find(jobId: string, accountId: string): Promise<StoredReceipt | null> {
    const waiting = this.#rows.get(jobId);
    if (waiting !== undefined) return ofAccount(waiting, accountId);
    const row = await this.#database
      .selectFrom('receipts')
      .selectAll()
      .where('job_id', '=', jobId)
      .where('account_id', '=', accountId)
      .executeTakeFirst();
    return row === undefined ? null : fromRow(row);
  }

  /** Like {@link find}, but without a query: only receipts that wait to be written. */
  findQueued(jobId: string, accountId: string): StoredReceipt | null {
    return ofAccount(this.#rows.get(jobId), accountId);
  }

  /** Writes queued receipts. Never rejects. */
  flush(): Promise<void> {
    return this.#rows.flush();
  }

  get backlog(): WriteBacklog {
    return this.#rows.backlog;
  }

  close(): Promise<void> {
    return this.#rows.close();
  }

  async #trimSometimes(): Promise<void> {
    if (this.#writes++ % TRIM_EVERY === 0) await this.#trim();
  }

  async #trim(): Promise<void> {
    const boundary = await this.#database
      .selectFrom('receipts')
      .select('created_at')
      .orderBy('created_at', 'desc')
      .offset(this.#maxRows)
      .limit(1)
      .executeTakeFirst();
    if (boundary !== undefined) await this.#database.deleteFrom('receipts').where('created_at', '<=', boundary.created_at).execute();
  }
}

/** The receipt; null if it does not belong to the account. */
export function ofAccount(receipt: StoredReceipt | undefined, accountId: string): StoredReceipt | null {
  return receipt?.accountId === accountId ? receipt : null;
}

function toRow(receipt: StoredReceipt): Tables['receipts'] {
  return {
    job_id: receipt.jobId,
    account_id: receipt.accountId,
    receipt: receipt.receipt,
    receipt_signature: receipt.receiptSignature,
    response_signature: receipt.responseSignature,
    created_at: receipt.createdAt,
  };
}

function fromRow(row: Tables['receipts']): StoredReceipt {
  return {
    jobId: row.job_id,
    accountId: row.account_id,
    receipt: row.receipt,
    receiptSignature: row.receipt_signature,
    responseSignature: row.response_signature,
    createdAt: row.created_at,
  };
}
