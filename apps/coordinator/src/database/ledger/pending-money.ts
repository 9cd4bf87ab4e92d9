/** `pendingMoney`: counts open reservations and payout transfers, for metrics. Reads indexes only of what is open, not of history. */
import type { Database } from '../tables.js';

export interface PendingMoney {
  /** Jobs in state `reserved`, at all coordinators. Jobs reserved from credit leases have no row yet. */
  readonly reservations: number;
  /** Milliseconds since 1970; null without reservations. */
  readonly oldestReservationAt: number | null;
  /** Withdrawals whose transfer has begun, without a known outcome. */
  readonly transfers: number;
  readonly oldestTransferAt: number | null;
}

/** PostgreSQL returns 64-bit integers as text. */
type Count = number | string;

export async function pendingMoney(database: Database): Promise<PendingMoney> {
  const reservations = await database
    .selectFrom('jobs')
    .select(({ fn }) => [fn.countAll<Count>().as('count'), fn.min<Count | null>('reserved_at').as('oldest')])
    .where('state', '=', 'reserved')
    .executeTakeFirstOrThrow();
  const transfers = await database
    .selectFrom('withdrawals')
    .innerJoin('withdrawal_ends', 'withdrawal_ends.withdrawal_id', 'withdrawals.id')
    .select(({ fn }) => [fn.countAll<Count>().as('count'), fn.min<Count | null>('withdrawal_ends.claimed_at').as('oldest')])
    .where('withdrawals.state', '=', 'requested')
    .where('withdrawal_ends.end', '=', 'transfer')
    .executeTakeFirstOrThrow();
  return {
    reservations: Number(reservations.count),
    oldestReservationAt: reservations.oldest === null ? null : Number(reservations.oldest),
    transfers: Number(transfers.count),
    oldestTransferAt: transfers.oldest === null ? null : Number(transfers.oldest),
  };
}
