/**
 * Receipts of finished jobs, kept for the account that paid for them. They hold no content: ids, digests and counts.
 * Writes are gathered into small transactions, so that a job waits for no disk; the newest ones are kept up to a bound.
 */
import { rowWriter } from './statements.js';
import type { Database, Tables } from './tables.js';

export interface KeptReceipt {
  readonly jobId: string;
  readonly accountId: string;
  /** base64url of the payload that the enclave signed. */
  readonly receipt: string;
  /** base64 of the signature over the receipt, and of the one over the response hash. */
  readonly receiptSignature: string;
  readonly responseSignature: string;
  readonly createdAt: number;
}

export interface ReceiptBookOptions {
  readonly database: Database;
  readonly keep?: number;
  readonly writeEveryMs?: number;
  readonly onWriteError: (error: unknown) => void;
}

/** Rows of one write: few enough that streams do not notice when the embedded database takes them on this thread. */
const ROWS_PER_WRITE = 32;
/** Unwritten receipts held at most; beyond this the disk is not keeping up and the oldest are given up. */
const MOST_WAITING = 20_000;
/** Old rows are looked for once in this many writes. */
const TRIM_EVERY = 50;

export class ReceiptBook {
  readonly #database: Database;
  readonly #keep: number;
  readonly #onWriteError: (error: unknown) => void;
  readonly #rows = rowWriter(
    'receipts',
    ['job_id', 'account_id', 'receipt', 'receipt_signature', 'response_signature', 'created_at'],
    (insert) => insert.onConflict((conflict) => conflict.column('job_id').doNothing()),
  );
  readonly #waiting = new Map<string, KeptReceipt>();
  readonly #writer: NodeJS.Timeout;
  #writing: Promise<void> | null = null;
  #writes = 0;

  constructor(options: ReceiptBookOptions) {
    this.#database = options.database;
    this.#keep = options.keep ?? 200_000;
    this.#onWriteError = options.onWriteError;
    this.#writer = setInterval(() => void this.flush(), options.writeEveryMs ?? 500);
    this.#writer.unref();
  }

  add(receipt: KeptReceipt): void {
    if (this.#waiting.size >= MOST_WAITING) {
      const [oldest] = this.#waiting.keys();
      if (oldest !== undefined) this.#waiting.delete(oldest);
    }
    this.#waiting.set(receipt.jobId, receipt);
  }

  /** The receipt of a job, if it belongs to this account. */
  async find(jobId: string, accountId: string): Promise<KeptReceipt | null> {
    const waiting = this.#waiting.get(jobId);
    if (waiting !== undefined) return waiting.accountId === accountId ? waiting : null;
    const row = await this.#database
      .selectFrom('receipts')
      .selectAll()
      .where('job_id', '=', jobId)
      .where('account_id', '=', accountId)
      .executeTakeFirst();
    return row === undefined ? null : fromRow(row);
  }

  /** Writes what waits. Concurrent calls share one write. */
  flush(): Promise<void> {
    this.#writing ??= this.#write().finally(() => {
      this.#writing = null;
    });
    return this.#writing;
  }

  async close(): Promise<void> {
    clearInterval(this.#writer);
    await this.flush();
    await this.flush();
  }

  async #write(): Promise<void> {
    const batch = [...this.#waiting.values()];
    if (batch.length === 0) return;
    try {
      for (let start = 0; start < batch.length; start += ROWS_PER_WRITE) {
        await this.#rows.write(this.#database, batch.slice(start, start + ROWS_PER_WRITE).map(toRow));
      }
      for (const receipt of batch) this.#waiting.delete(receipt.jobId);
      if (this.#writes++ % TRIM_EVERY === 0) await this.#trim();
    } catch (error) {
      this.#onWriteError(error);
    }
  }

  async #trim(): Promise<void> {
    const boundary = await this.#database
      .selectFrom('receipts')
      .select('created_at')
      .orderBy('created_at', 'desc')
      .offset(this.#keep)
      .limit(1)
      .executeTakeFirst();
    if (boundary !== undefined) await this.#database.deleteFrom('receipts').where('created_at', '<=', boundary.created_at).execute();
  }
}

function toRow(receipt: KeptReceipt): Tables['receipts'] {
  return {
    job_id: receipt.jobId,
    account_id: receipt.accountId,
    receipt: receipt.receipt,
    receipt_signature: receipt.receiptSignature,
    response_signature: receipt.responseSignature,
    created_at: receipt.createdAt,
  };
}

function fromRow(row: Tables['receipts']): KeptReceipt {
  return {
    jobId: row.job_id,
    accountId: row.account_id,
    receipt: row.receipt,
    receiptSignature: row.receipt_signature,
    responseSignature: row.response_signature,
    createdAt: row.created_at,
  };
}
