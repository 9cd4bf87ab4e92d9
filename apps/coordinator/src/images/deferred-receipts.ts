/**
 * Receipts that name the URLs of images, kept in memory until those URLs have ended, and only then written down: a URL holds the
 * key of its image, and beside the image on the same disk it would open it. A process that ends takes them along; the client has
 * its own, which came with the answer.
 */

import type { ReceiptRepository, StoredReceipt } from '../database/providers/receipt-repository.js';
import { BoundedMap } from '../limits/bounded-map.js';

/** Receipts that are held; beyond this the oldest are given up. */
const MAX_HELD = 20_000;
/** Those whose time has come are looked for this often, in milliseconds. */
const HAND_ON_MS = 15_000;

export class DeferredReceipts {
  readonly #book: Pick<ReceiptRepository, 'add' | 'find'>;
  readonly #now: () => number;
  readonly #timer: NodeJS.Timeout;
  readonly #held = new BoundedMap<string, { readonly receipt: StoredReceipt; readonly until: number }>(MAX_HELD);

  constructor(book: Pick<ReceiptRepository, 'add' | 'find'>, now: () => number) {
    this.#book = book;
    this.#now = now;
    this.#timer = setInterval(() => this.handOn(), HAND_ON_MS);
    this.#timer.unref();
  }

  /** Keeps a receipt, in memory alone until a time in milliseconds. */
  add(receipt: StoredReceipt, until: number): void {
    this.#held.set(receipt.jobId, { receipt, until });
  }

  /** The receipt of a job, held or written, if it belongs to this account. */
  async find(jobId: string, accountId: string): Promise<StoredReceipt | null> {
    const held = this.#held.get(jobId)?.receipt;
    if (held !== undefined) return held.accountId === accountId ? held : null;
    return this.#book.find(jobId, accountId);
  }

  /** Hands on those whose time has come. */
  handOn(): void {
    const now = this.#now();
    for (const [jobId, { receipt, until }] of this.#held) {
      if (until > now) continue;
      this.#held.delete(jobId);
      this.#book.add(receipt);
    }
  }

  close(): void {
    clearInterval(this.#timer);
    this.handOn();
  }
}
