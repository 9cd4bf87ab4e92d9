/**
 * `DeferredReceipts`: receipts with image URLs, in memory until the URLs expire. A restart loses them; clients have copies.
 *
 * A URL contains the key of its image, so a stored receipt would decrypt the image on the same disk.
 */

import { BoundedMap } from '@inference/scheduler/bounded-map';
import { ofAccount, type ReceiptRepository, type StoredReceipt } from '../database/providers/receipt-repository.js';

/** Maximum deferred receipts; beyond, the oldest are dropped. */
const MAX_DEFERRED = 20_000;
/** Interval of the search for expired URLs, in milliseconds. */
const FLUSH_INTERVAL_MS = 15_000;

export class DeferredReceipts {
  readonly #repository: Pick<ReceiptRepository, 'add' | 'find' | 'findQueued'>;
  readonly #now: () => number;
  readonly #timer: NodeJS.Timeout;
  readonly #deferred = new BoundedMap<string, { readonly receipt: StoredReceipt; readonly until: number }>(MAX_DEFERRED);

  constructor(repository: Pick<ReceiptRepository, 'add' | 'find' | 'findQueued'>, now: () => number) {
    this.#repository = repository;
    this.#now = now;
    this.#timer = setInterval(() => this.flushExpired(), FLUSH_INTERVAL_MS);
    this.#timer.unref();
  }

  /** Stores a receipt in memory alone until a time in milliseconds. */
  add(receipt: StoredReceipt, until: number): void {
    this.#deferred.set(receipt.jobId, { receipt, until });
  }

  /** The receipt of a job, deferred or stored. Null: unknown, or of another account. */
  async find(jobId: string, accountId: string): Promise<StoredReceipt | null> {
    const held = this.#deferred.get(jobId)?.receipt;
    if (held !== undefined) return ofAccount(held, accountId);
    return this.#repository.find(jobId, accountId);
  }

  /** The receipt of a job before it is in the database, at this coordinator only. */
  findUnwritten(jobId: string, accountId: string): StoredReceipt | null {
    return ofAccount(this.#deferred.get(jobId)?.receipt, accountId) ?? this.#repository.findQueued(jobId, accountId);
  }

  /** Writes the receipts with expired URLs. */
  flushExpired(): void {
    const now = this.#now();
    for (const [jobId, { receipt, until }] of this.#deferred) {
      if (until > now) continue;
      this.#deferred.delete(jobId);
      this.#repository.add(receipt);
    }
  }

  close(): void {
    clearInterval(this.#timer);
    this.flushExpired();
  }
}
