/**
 * `DeferredReceipts` stores the signed receipts of jobs with image URLs in memory until the URLs expire, and then in the database.
 *
 * A receipt contains its image URLs, and a URL contains the key of its image. On disk, the receipt would thus decrypt the image beside it.
 *
 * A restart loses the receipts in memory. Clients have their own copies.
 */
import { BoundedMap } from '@inference/scheduler/bounded-map';
import { ofAccount, type ReceiptRepository, type StoredReceipt } from '../database/providers/receipt-repository.js';

/** Maximum receipts in memory. Above it, the oldest are dropped. */
const MAX_DEFERRED = 20_000;
/** Interval of checks for expired URLs, in milliseconds. */
const FLUSH_INTERVAL_MS = 15_000;

export class DeferredReceipts {
  readonly #repository: Pick<ReceiptRepository, 'add' | 'find' | 'findQueued'>;
  readonly #now: () => number;
  readonly #timer: NodeJS.Timeout;
  /** Key: job id. */
  readonly #deferred = new BoundedMap<string, { readonly receipt: StoredReceipt; readonly until: number }>(MAX_DEFERRED);

  constructor(repository: Pick<ReceiptRepository, 'add' | 'find' | 'findQueued'>, now: () => number) {
    this.#repository = repository;
    this.#now = now;
    this.#timer = setInterval(() => this.flushExpired(), FLUSH_INTERVAL_MS);
    this.#timer.unref();
  }

  /** Stores a receipt in memory until a time in milliseconds since 1970. */
  add(receipt: StoredReceipt, until: number): void {
    this.#deferred.set(receipt.jobId, { receipt, until });
  }

  /** The receipt of a job, in memory or in the database. Null if unknown, or of another account. */
  async find(jobId: string, accountId: string): Promise<StoredReceipt | null> {
    const held = this.#deferred.get(jobId)?.receipt;
    if (held !== undefined) return ofAccount(held, accountId);
    return this.#repository.find(jobId, accountId);
  }

  /** The receipt of a job if this coordinator has not written it to the database yet. */
  findUnwritten(jobId: string, accountId: string): StoredReceipt | null {
    return ofAccount(this.#deferred.get(jobId)?.receipt, accountId) ?? this.#repository.findQueued(jobId, accountId);
  }

  /** Writes the receipts whose URLs have expired to the database. */
  flushExpired(): void {
    const now = this.#now();
    for (const [jobId, { receipt, until }] of this.#deferred) {
      if (until > now) continue;
      this.#deferred.delete(jobId);
      this.#repository.add(receipt);
    }
  }

  /** Writes the receipts whose URLs have expired. The others are lost. */
  close(): void {
    clearInterval(this.#timer);
    this.flushExpired();
  }
}
