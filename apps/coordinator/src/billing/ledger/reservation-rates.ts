/**
 * `ReservationRates` measures each account's reservations per second at this coordinator. `CreditLeases` gives leases to accounts with
 * a high rate.
 */

/** Reservations of one account in one second. */
export interface ReservationRate {
  readonly count: number;
  /** Sum of their maximum costs, in micro-USD. */
  readonly cost: number;
}

interface Seconds {
  begunAt: number;
  count: number;
  cost: number;
  last: ReservationRate | null;
}

const SECOND_MS = 1000;

export class ReservationRates {
  readonly #byAccount = new Map<string, Seconds>();

  /** `now` is a monotonic time in milliseconds. */
  add(account: string, cost: number, now: number): void {
    const seconds = this.#byAccount.get(account);
    if (seconds !== undefined && now - seconds.begunAt <= SECOND_MS) {
      seconds.count++;
      seconds.cost += cost;
      return;
    }
    const isNext = seconds !== undefined && now - seconds.begunAt <= 2 * SECOND_MS;
    const last = isNext ? { count: seconds.count, cost: seconds.cost } : null;
    this.#byAccount.set(account, { begunAt: now, count: 1, cost, last });
  }

  /** Maxima of count and cost over the second of the last reservation and the second before. */
  of(account: string): ReservationRate {
    const { count, cost, last } = this.#byAccount.get(account) ?? { count: 0, cost: 0, last: null };
    return { count: Math.max(count, last?.count ?? 0), cost: Math.max(cost, last?.cost ?? 0) };
  }

  /** Drops accounts without recent reservations. */
  prune(now: number): void {
    for (const [account, { begunAt }] of this.#byAccount) if (now - begunAt > 2 * SECOND_MS) this.#byAccount.delete(account);
  }
}
