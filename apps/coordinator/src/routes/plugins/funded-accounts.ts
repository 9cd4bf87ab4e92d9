/** `FundedAccounts` caches whether accounts have a balance. Request bodies of accounts without one share a smaller memory budget. */

import { BoundedMap } from '@inference/scheduler/bounded-map';
import type { Ledger } from '../../billing/ledger/ledger.js';

const MAX_REMEMBERED = 20_000;
const FUNDED_MS = 60_000;
/** Time for which an account without a balance is cached. Also the maximum delay until a deposit takes effect. */
const UNFUNDED_MS = 1000;

export class FundedAccounts {
  readonly #ledger: Pick<Ledger, 'balance'>;
  readonly #now: () => number;
  readonly #known = new BoundedMap<string, { readonly isFunded: boolean; readonly until: number }>(MAX_REMEMBERED);
  readonly #pending = new Map<string, Promise<boolean>>();

  /** `now` is a monotonic clock, in milliseconds. */
  constructor(ledger: Pick<Ledger, 'balance'>, now: () => number = () => performance.now()) {
    this.#ledger = ledger;
    this.#now = now;
  }

  /** Whether the account has a balance. Synchronous if cached. While the ledger cannot be read, the last state applies, initially false. */
  isFunded(accountId: string): boolean | Promise<boolean> {
    const known = this.#known.get(accountId);
    if (known !== undefined && this.#now() < known.until) return known.isFunded;
    const pending = this.#pending.get(accountId);
    if (pending !== undefined) return pending;
    const answer = this.#read(accountId, known?.isFunded ?? false).finally(() => this.#pending.delete(accountId));
    this.#pending.set(accountId, answer);
    return answer;
  }

  async #read(accountId: string, before: boolean): Promise<boolean> {
    let isFunded = before;
    try {
      isFunded = (await this.#ledger.balance(accountId)).balance > 0;
    } catch {
      // If the ledger still fails, so does the reservation of the request's job, which reports the error.
    }
    this.#known.set(accountId, { isFunded, until: this.#now() + (isFunded ? FUNDED_MS : UNFUNDED_MS) });
    return isFunded;
  }
}
