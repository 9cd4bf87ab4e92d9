/**
 * `ReservationRates` measures each account's reservations per second at this coordinator. Accounts with a high rate get credit leases.
 */

/** Reservations of one account in one second. */
export interface ReservationRate {
  readonly count: number;
  /** Sum of their maximum costs, in micro-USD. */
  readonly cost: number;
}

interface Seconds {
  /** Start of the current second, which is the time of its first reservation. */
  begunAt: number;
  count: number;
  cost: number;
  /** Null if the second before had no reservation. */
  previous: ReservationRate | null;
}

const SECOND_MS = 1000;

export class ReservationRates {
  readonly #secondsByAccount = new Map<string, Seconds>();

  /** `now` is a monotonic time in milliseconds. */
  add(account: string, cost: number, now: number): void {
    const seconds = this.#secondsByAccount.get(account);
    if (seconds !== undefined && now - seconds.begunAt <= SECOND_MS) {
      seconds.count++;
      seconds.cost += cost;
      return;
    }
    const isAdjacent = seconds !== undefined && now - seconds.begunAt <= 2 * SECOND_MS;
    const previous = isAdjacent ? { count: seconds.count, cost: seconds.cost } : null;
    this.#secondsByAccount.set(account, { begunAt: now, count: 1, cost, previous });
  }

  /** Maxima of count and cost over the second of the last reservation and the second before. */
  of(account: string): ReservationRate {
    const { count, cost, previous } = this.#secondsByAccount.get(account) ?? { count: 0, cost: 0, previous: null };
    return { count: Math.max(count, previous?.count ?? 0), cost: Math.max(cost, previous?.cost ?? 0) };
  }

  /** Drops accounts whose current second began more than two seconds ago. */
  prune(now: number): void {
    for (const [account, { begunAt }] of this.#secondsByAccount) if (now - begunAt > 2 * SECOND_MS) this.#secondsByAccount.delete(account);
  }
}
