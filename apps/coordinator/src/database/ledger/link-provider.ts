/**
 * `linkProvider` and `unlinkProvider`: change the account that a provider earns for.
 *
 * While a provider has no owner, its earnings go to an unclaimed account. The account that links the provider next gets them, with their
 * roll-ups (sums per hour or window).
 */
import { sql } from 'kysely';
import { locked } from '../connection/row-lock.js';
import type { Database } from '../tables.js';
import { ACTIVITY } from './activity.js';
import { lockNetwork } from './totals.js';
import { isUnclaimed, unclaimedAccount } from './unclaimed-accounts.js';

type LinkOutcome = 'linked' | 'other_account';

/** Links a provider. Resolves to `other_account`, and changes nothing, if an owner must not be replaced. */
export async function linkProvider(
  transaction: Database,
  { providerId, accountId, at, replaces }: { providerId: string; accountId: string; at: number; replaces: 'any_owner' | 'closed_owner' },
): Promise<LinkOutcome> {
  await transaction
    .insertInto('provider_owners')
    .values({ provider_id: providerId, account_id: unclaimedAccount(providerId), first_owner: null, linked_at: null })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  const owner = await lockedOwner(transaction, providerId).executeTakeFirstOrThrow();
  const current = owner.account_id;
  if (current === accountId) return 'linked';
  if (!isUnclaimed(current) && replaces === 'closed_owner' && !(await isClosed(transaction, current))) return 'other_account';
  await transaction
    .updateTable('provider_owners')
    .set({ account_id: accountId, first_owner: owner.first_owner ?? accountId, linked_at: at })
    .where('provider_id', '=', providerId)
    .execute();
  if (!isUnclaimed(current)) return 'linked';
  await transaction.updateTable('unclaimed_accounts').set({ claimed_by: accountId }).where('account', '=', current).execute();
  await moveEarnings(transaction, current, accountId, `link:${providerId}:${at}`, at);
  await moveRollUps(transaction, current, accountId);
  await movePayers(transaction, current, accountId);
  return 'linked';
}

/**
 * Unlinks a provider, whose further earnings are unclaimed, and deletes its row of `machines_last_seen`.
 *
 * @returns False: the account is not the owner, and nothing changed.
 */
export async function unlinkProvider(
  transaction: Database,
  { providerId, accountId, at }: { providerId: string; accountId: string; at: number },
): Promise<boolean> {
  const owner = await lockedOwner(transaction, providerId).executeTakeFirst();
  if (owner?.account_id !== accountId) return false;
  const { before } = await transaction
    .selectFrom('unclaimed_accounts')
    .select((select) => select.fn.countAll<number>().as('before'))
    .where('provider_id', '=', providerId)
    .executeTakeFirstOrThrow();
  // Each period without owner has its own account, because an earlier unclaimed account belongs to the owner who claimed it.
  const account = `${unclaimedAccount(providerId)}:${before + 1}`;
  await transaction.insertInto('unclaimed_accounts').values({ account, provider_id: providerId, since: at, claimed_by: null }).execute();
  await transaction
    .updateTable('provider_owners')
    .set({ account_id: account, linked_at: null })
    .where('provider_id', '=', providerId)
    .execute();
  // Also after the erasure of a closed account, because `LastSeenRepository` may have written a queued row since.
  await transaction.deleteFrom('machines_last_seen').where('provider_id', '=', providerId).execute();
  return true;
}

function lockedOwner(transaction: Database, providerId: string) {
  return locked(transaction, transaction.selectFrom('provider_owners').selectAll().where('provider_id', '=', providerId), 'update');
}

/** Whether an account is closed. A provider of a closed account may be linked like one without owner. */
async function isClosed(transaction: Database, accountId: string): Promise<boolean> {
  const row = await transaction.selectFrom('accounts').select('deleted_at').where('id', '=', accountId).executeTakeFirst();
  return row !== undefined && row.deleted_at !== null;
}

async function moveEarnings(transaction: Database, from: string, to: string, event: string, at: number): Promise<void> {
  const rows = await locked(
    transaction,
    transaction.selectFrom('balances').selectAll().where('account', 'in', [from, to]).orderBy('account'),
    'update',
  ).execute();
  const amount = rows.find((row) => row.account === from)?.balance ?? 0;
  if (amount === 0) return;
  const paid = await transaction
    .selectFrom('payer_earnings')
    .select((select) => select.fn.sum<number | null>('of_deposits').as('deposits'))
    .where('earner', '=', from)
    .where('payer', '=', to)
    .executeTakeFirstOrThrow();
  // The part that the new owner itself paid from deposits becomes deposited money again, which cannot be withdrawn.
  const earned = amount - Math.min(amount, paid.deposits ?? 0);
  await transaction
    .insertInto('postings')
    .values([
      { event, account: from, amount: -amount, earned: -amount, at },
      { event, account: to, amount, earned, at },
    ])
    .execute();
  await transaction.updateTable('balances').set({ balance: 0, earned: 0 }).where('account', '=', from).execute();
  await transaction
    .insertInto('balances')
    .values({ account: to, balance: amount, reserved: 0, earned })
    .onConflict((conflict) =>
      conflict.column('account').doUpdateSet((set) => ({
        balance: set('balances.balance', '+', set.ref('excluded.balance')),
        earned: set('balances.earned', '+', set.ref('excluded.earned')),
      })),
    )
    .execute();
}

/** An account that was active in the same window as the unclaimed one is then counted once instead of twice. */
async function moveRollUps(transaction: Database, from: string, to: string): Promise<void> {
  const network = await lockNetwork(transaction);
  const both = await transaction.selectFrom('account_totals').select(['window', 'account']).where('account', 'in', [from, to]).execute();
  for (const { window } of network) {
    if (both.filter((row) => row.window === window).length === 2) {
      await transaction
        .updateTable('network_totals')
        .set((set) => ({ active_accounts: set('active_accounts', '-', 1) }))
        .where('window', '=', window)
        .execute();
    }
  }
  const counts = sql.join(ACTIVITY.map((name) => sql.ref(name)));
  for (const [table, key] of [
    ['account_hours', 'hour'],
    ['account_totals', 'window'],
  ] as const) {
    const added = sql.join(ACTIVITY.map((name) => sql`${sql.ref(name)} = ${sql.ref(`${table}.${name}`)} + ${sql.ref(`excluded.${name}`)}`));
    await sql`
      insert into ${sql.table(table)} (${sql.ref(key)}, account, ${counts})
      select ${sql.ref(key)}, ${to}, ${counts} from ${sql.table(table)} where account = ${from}
      on conflict (${sql.ref(key)}, account) do update set ${added}`.execute(transaction);
    await transaction.deleteFrom(table).where('account', '=', from).execute();
  }
}

/**
 * Moves earnings per payer and per day to the new owner, except what the new owner itself paid.
 *
 * The lock on the provider's owner row makes concurrent settlements wait.
 */
async function movePayers(transaction: Database, from: string, to: string): Promise<void> {
  const own = await transaction
    .deleteFrom('payer_earnings')
    .where('earner', '=', from)
    .where('payer', '=', to)
    .returning(['day', 'earned'])
    .execute();
  const ownOf = new Map(own.map(({ day, earned }) => [day, earned]));
  const pending = await transaction.deleteFrom('pending_earnings').where('account', '=', from).returning(['day', 'amount']).execute();
  for (const { day, amount } of pending) {
    // At least 0: earnings from before `earnings_pending_since` are in `payer_earnings`, but not in `pending_earnings`.
    const left = Math.max(0, amount - (ownOf.get(day) ?? 0));
    if (left === 0) continue;
    await transaction
      .insertInto('pending_earnings')
      .values({ account: to, day, amount: left })
      .onConflict((conflict) =>
        conflict
          .columns(['account', 'day'])
          .doUpdateSet((set) => ({ amount: set('pending_earnings.amount', '+', set.ref('excluded.amount')) })),
      )
      .execute();
  }
  await sql`
    insert into payer_earnings (earner, payer, day, earned, of_deposits)
    select ${to}, payer, day, earned, of_deposits from payer_earnings where earner = ${from}
    on conflict (earner, payer, day) do update set
      earned = payer_earnings.earned + excluded.earned, of_deposits = payer_earnings.of_deposits + excluded.of_deposits`.execute(
    transaction,
  );
  await transaction.deleteFrom('payer_earnings').where('earner', '=', from).execute();
}
