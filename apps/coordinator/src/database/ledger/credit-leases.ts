/**
 * Rows of credit leases. A lease is part of `balances.reserved`, so the check of balances bounds leases and reservations together.
 * Expiry follows the database's clock. Locks: the balance, then the lease.
 */
import { type RawBuilder, sql } from 'kysely';
import { dialectOf } from '../connection/dialect.js';
import { locked } from '../connection/row-lock.js';
import type { Database } from '../tables.js';

/** Takes a lease for `ms` milliseconds, of at most `wanted` and at most a `share`-th of the available balance; null if that is less than `min`. */
export async function takeLease(
  transaction: Database,
  lease: { readonly id: string; readonly account: string; readonly holder: string },
  { wanted, min, share, ms }: { readonly wanted: number; readonly min: number; readonly share: number; readonly ms: number },
): Promise<number | null> {
  const row = await lockBalance(transaction, lease.account);
  if (row === undefined) return null;
  const amount = Math.min(wanted, Math.floor((row.balance - row.reserved) / share));
  if (amount < min) return null;
  await addReserved(transaction, lease.account, amount);
  await transaction
    .insertInto('credit_leases')
    .values({ ...lease, amount, in_use: 0, expires_at: sql<number>`${clock(transaction)} + ${sql.lit(ms)}` })
    .execute();
  return amount;
}

/** Renews a lease for `ms` milliseconds. False if the lease expired and was released. */
export async function renewLease(database: Database, id: string, inUse: number, ms: number): Promise<boolean> {
  const result = await database
    .updateTable('credit_leases')
    .set({ in_use: inUse, expires_at: sql<number>`${clock(database)} + ${sql.lit(ms)}` })
    .where('id', '=', id)
    .executeTakeFirst();
  return Number(result.numUpdatedRows) === 1;
}

/** Returns what is left of a lease to the available balance. No effect if the lease was released before. */
export async function endLease(transaction: Database, account: string, id: string, only: 'expired' | 'any'): Promise<boolean> {
  await lockBalance(transaction, account);
  const ended = await transaction
    .deleteFrom('credit_leases')
    .where('id', '=', id)
    .$if(only === 'expired', (query) => query.where('expires_at', '<', clock(transaction)))
    .returning('amount')
    .executeTakeFirst();
  if (ended === undefined) return false;
  await addReserved(transaction, account, -ended.amount);
  return true;
}

export function expiredLeases(database: Database): Promise<{ readonly id: string; readonly account: string }[]> {
  return database.selectFrom('credit_leases').select(['id', 'account']).where('expires_at', '<', clock(database)).execute();
}

function lockBalance(transaction: Database, account: string) {
  return locked(
    transaction,
    transaction.selectFrom('balances').select(['balance', 'reserved']).where('account', '=', account),
    'update',
  ).executeTakeFirst();
}

async function addReserved(transaction: Database, account: string, amount: number): Promise<void> {
  await transaction
    .updateTable('balances')
    .set((set) => ({ reserved: set('reserved', '+', amount) }))
    .where('account', '=', account)
    .execute();
}

/** Milliseconds since 1970. */
function clock(database: Database): RawBuilder<number> {
  return dialectOf(database) === 'postgres'
    ? sql<number>`cast(extract(epoch from clock_timestamp()) * 1000 as bigint)`
    : sql<number>`cast((julianday('now') - 2440587.5) * 86400000 as integer)`;
}
