/** `FundedAccounts` caches whether accounts have a balance, for `requestBodies`. */

import { BoundedMap } from '@inference/scheduler/bounded-map';
import type { Ledger } from '../../billing/ledger/ledger.js';

const MAX_REMEMBERED = 20_000;
const FUNDED_MS = 60_000;
/** Time for which other states than funded are cached. Also the maximum delay until a deposit takes effect. */
const UNFUNDED_MS = 1000;
/** Minimum time between reported errors. */
const REPORT_MS = 10_000;

/** Whether an account has a balance; null: unknown, because the ledger could not be read. */
type Funding = boolean | null;

interface FundedAccountsOptions {
  readonly ledger: Pick<Ledger, 'balance'>;
  /** Called if a balance could not be read, at most once per {@link REPORT_MS}. */
  readonly onError: (error: unknown) => void;
  /** A monotonic clock, in milliseconds. */
  readonly now?: () => number;
}

export class FundedAccounts {
  readonly #ledger: Pick<Ledger, 'balance'>;
  readonly #onError: (error: unknown) => void;
  readonly #now: () => number;
  /** Key: account id. */
  readonly #known = new BoundedMap<string, { readonly isFunded: Funding; readonly until: number }>(MAX_REMEMBERED);
  readonly #pending = new Map<string, Promise<Funding>>();
  #reportedAt = Number.NEGATIVE_INFINITY;

  constructor({ ledger, onError, now = () => performance.now() }: FundedAccountsOptions) {
    this.#ledger = ledger;
    this.#onError = onError;
    this.#now = now;
  }

  /** Synchronous if cached. While the ledger cannot be read, the last known state applies, or null. */
  isFunded(accountId: string): Funding | Promise<Funding> {
    const known = this.#known.get(accountId);
    if (known !== undefined && this.#now() < known.until) return known.isFunded;
    const pending = this.#pending.get(accountId);
    if (pending !== undefined) return pending;
    const reading = this.#read(accountId, known?.isFunded ?? null).finally(() => this.#pending.delete(accountId));
    this.#pending.set(accountId, reading);
    return reading;
  }

  async #read(accountId: string, before: Funding): Promise<Funding> {
    let isFunded = before;
    try {
      isFunded = (await this.#ledger.balance(accountId)).balance > 0;
    } catch (error) {
      // Not rethrown: if the ledger still fails when the job reserves its cost, the request fails there.
      if (this.#now() - this.#reportedAt >= REPORT_MS) {
        this.#reportedAt = this.#now();
        this.#onError(error);
      }
    }
    this.#known.set(accountId, { isFunded, until: this.#now() + (isFunded === true ? FUNDED_MS : UNFUNDED_MS) });
    return isFunded;
  }
}
