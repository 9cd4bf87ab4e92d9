/**
 * Queries for credit leases: parts of a busy account's balance from which one coordinator reserves the costs of jobs in memory.
 *
 * `balances.reserved` includes the leases. They expire by the database's clock. To avoid deadlocks, a transaction that locks a balance and
 * leases locks the balance first, and leases in the order of their ids. `CreditLeases` decides when to call these functions.
 */
import { type RawBuilder, sql } from 'kysely';
import { dialectOf } from '../connection/dialect.js';
import { locked } from '../connection/row-lock.js';
import type { Database } from '../tables.js';

interface LeaseAmounts {
  /** Wanted amount, in micro-USD. */
  readonly requested: number;
  /** Minimum amount, in micro-USD. */
  readonly min: number;
  /** The lease gets at most the available balance divided by this number. */
  readonly divisor: number;
  readonly lifetimeMs: number;
}

/** Creates a lease. Resolves to its amount in micro-USD; null: the amount would be less than `min`, and no lease is created. */
export async function takeLease(
  transaction: Database,
  lease: { readonly id: string; readonly account: string; readonly holder: string },
  { requested, min, divisor, lifetimeMs }: LeaseAmounts,
): Promise<number | null> {
  const row = await lockBalance(transaction, lease.account);
  if (row === undefined) return null;
  const amount = Math.min(requested, Math.floor((row.balance - row.reserved) / divisor));
  if (amount < min) return null;
  await addReserved(transaction, lease.account, amount);
  await transaction
    .insertInto('credit_leases')
    .values({ ...lease, amount, in_use: 0, expires_at: sql<number>`${clock(transaction)} + ${sql.lit(lifetimeMs)}`, is_recalled: 0 })
    .execute();
  return amount;
}

interface RenewedLease {
  readonly id: string;
  readonly is_recalled: number;
}

/** Extends leases to end in `lifetimeMs`. Resolves to the renewed leases. The others have no row any more, because they have ended. */
export async function renewLeases(
  transaction: Database,
  leases: readonly { readonly id: string; readonly inUse: number }[],
  lifetimeMs: number,
): Promise<readonly RenewedLease[]> {
  const ids = leases.map(({ id }) => id);
  // Settlements lock leases in the same order.
  await locked(transaction, transaction.selectFrom('credit_leases').select('id').where('id', 'in', ids).orderBy('id'), 'update').execute();
  const values = leases.map(({ id, inUse }) => sql`(cast(${id} as text), cast(${inUse} as bigint))`);
  const { rows } = await sql<RenewedLease>`update credit_leases
    set in_use = renewed.column2, expires_at = ${clock(transaction)} + ${sql.lit(lifetimeMs)}
    from (values ${sql.join(values)}) as renewed where credit_leases.id = renewed.column1
    returning id, is_recalled`.execute(transaction);
  return rows;
}

/**
 * Returns the unused part of a lease to the available balance.
 *
 * @param inUse Returns the amount that running jobs have reserved. Called while the lease is locked.
 * @returns The amount that stays in the lease; 0: the lease has ended.
 */
export async function returnUnused(transaction: Database, account: string, id: string, inUse: () => number): Promise<number> {
  await lockBalance(transaction, account);
  const row = await locked(
    transaction,
    transaction.selectFrom('credit_leases').select('amount').where('id', '=', id),
    'update',
  ).executeTakeFirst();
  if (row === undefined) return 0;
  const left = Math.min(row.amount, inUse());
  if (left === 0) await transaction.deleteFrom('credit_leases').where('id', '=', id).execute();
  else await transaction.updateTable('credit_leases').set({ amount: left, in_use: left, is_recalled: 0 }).where('id', '=', id).execute();
  if (left < row.amount) await addReserved(transaction, account, left - row.amount);
  return left;
}

/** Ends a lease, if it has not ended yet, and returns its amount to the available balance. */
export async function endLease(
  transaction: Database,
  account: string,
  id: string,
  { onlyIfExpired }: { readonly onlyIfExpired: boolean },
): Promise<void> {
  await lockBalance(transaction, account);
  const ended = await transaction
    .deleteFrom('credit_leases')
    .where('id', '=', id)
    .$if(onlyIfExpired, (query) => query.where('expires_at', '<', clock(transaction)))
    .returning('amount')
    .executeTakeFirst();
  if (ended !== undefined) await addReserved(transaction, account, -ended.amount);
}

/** Marks the account's leases at other coordinators as recalled, so that those coordinators return the unused parts. */
export async function recallLeases(transaction: Database, account: string, self: string): Promise<void> {
  await lockBalance(transaction, account);
  await transaction
    .updateTable('credit_leases')
    .set({ is_recalled: 1 })
    .where('account', '=', account)
    .where('holder', '<>', self)
    .execute();
}

/** Whether a lease of the account is still marked as recalled. */
export async function hasRecalls(database: Database, account: string): Promise<boolean> {
  const row = await database
    .selectFrom('credit_leases')
    .select('id')
    .where('account', '=', account)
    .where('is_recalled', '=', 1)
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

/** Sum of the account's leases at other coordinators. */
export async function leasedElsewhere(database: Database, account: string, self: string): Promise<number> {
  const { sum } = await database
    .selectFrom('credit_leases')
    .select((select) => sql<number>`coalesce(${select.fn.sum('amount')}, 0)`.as('sum'))
    .where('account', '=', account)
    .where('holder', '<>', self)
    .executeTakeFirstOrThrow();
  return Number(sum);
}

/** Leases that expired at least `graceMs` ago. */
export function expiredLeases(database: Database, graceMs: number): Promise<{ readonly id: string; readonly account: string }[]> {
  return database
    .selectFrom('credit_leases')
    .select(['id', 'account'])
    .where('expires_at', '<', sql<number>`${clock(database)} - ${sql.lit(graceMs)}`)
    .execute();
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

/** SQL expression of the database's clock, in milliseconds since 1970. */
function clock(database: Database): RawBuilder<number> {
  return dialectOf(database) === 'postgres'
    ? sql<number>`cast(extract(epoch from clock_timestamp()) * 1000 as bigint)`
    : sql<number>`cast((julianday('now') - 2440587.5) * 86400000 as integer)`;
}
