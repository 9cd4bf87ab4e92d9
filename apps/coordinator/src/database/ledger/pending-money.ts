/** `pendingMoney`: reservations and transfers that have not ended, by indexes and without reading the history. */
import type { Database } from '../tables.js';

export interface PendingMoney {
  /** Jobs with a reservation, at any coordinator. */
  readonly reservations: number;
  /** Milliseconds since 1970; null without reservations. */
  readonly oldestReservationAt: number | null;
  /** Withdrawals whose transfer began and has no known outcome. */
  readonly transfers: number;
  readonly oldestTransferAt: number | null;
}

type Counted = number | string;

export async function pendingMoney(database: Database): Promise<PendingMoney> {
  const held = await database
    .selectFrom('jobs')
    .select(({ fn }) => [fn.countAll<Counted>().as('count'), fn.min<Counted | null>('reserved_at').as('oldest')])
    .where('state', '=', 'reserved')
    .executeTakeFirstOrThrow();
  const transfers = await database
    .selectFrom('withdrawals')
    .innerJoin('withdrawal_ends', 'withdrawal_ends.withdrawal_id', 'withdrawals.id')
    .select(({ fn }) => [fn.countAll<Counted>().as('count'), fn.min<Counted | null>('withdrawal_ends.claimed_at').as('oldest')])
    .where('withdrawals.state', '=', 'requested')
    .where('withdrawal_ends.end', '=', 'transfer')
    .executeTakeFirstOrThrow();
  return {
    reservations: Number(held.count),
    oldestReservationAt: held.oldest === null ? null : Number(held.oldest),
    transfers: Number(transfers.count),
    oldestTransferAt: transfers.oldest === null ? null : Number(transfers.oldest),
  };
}
