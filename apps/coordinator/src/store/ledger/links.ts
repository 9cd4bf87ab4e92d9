/** Gives a provider its owner: what the provider earned so far, and its place in the roll-ups, move to the owner's account. */
import { sql } from 'kysely';
import type { Database } from '../tables.js';
import { ACTIVITY } from './activity.js';
import { locked, unclaimedAccount } from './ground.js';
import { lockNetwork } from './totals.js';

/** Call it inside a transaction of its own. Does nothing when the provider already has this owner. */
export async function linkProvider(transaction: Database, providerId: string, accountId: string, at: number): Promise<void> {
  const unclaimed = unclaimedAccount(providerId);
  await transaction
    .insertInto('provider_owners')
    .values({ provider_id: providerId, account_id: unclaimed, first_owner: null, linked_at: null })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  const current = await locked(
    transaction,
    transaction.selectFrom('provider_owners').selectAll().where('provider_id', '=', providerId),
    'update',
  ).executeTakeFirstOrThrow();
  if (current.account_id === accountId) return;
  await transaction
    .updateTable('provider_owners')
    .set({ account_id: accountId, first_owner: current.first_owner ?? accountId, linked_at: at })
    .where('provider_id', '=', providerId)
    .execute();
  if (current.account_id !== unclaimed) return;
  await moveEarnings(transaction, unclaimed, accountId, `link:${providerId}:${at}`, at);
  await moveRollUps(transaction, unclaimed, accountId);
}

async function moveEarnings(transaction: Database, from: string, to: string, event: string, at: number): Promise<void> {
  const rows = await locked(
    transaction,
    transaction.selectFrom('balances').selectAll().where('account', 'in', [from, to]).orderBy('account'),
    'update',
  ).execute();
  const amount = rows.find((row) => row.account === from)?.balance ?? 0;
  if (amount === 0) return;
  await transaction
    .insertInto('postings')
    .values([
      { event, account: from, amount: -amount, earned: -amount, at },
      { event, account: to, amount, earned: amount, at },
    ])
    .execute();
  await transaction.updateTable('balances').set({ balance: 0, earned: 0 }).where('account', '=', from).execute();
  await transaction
    .insertInto('balances')
    .values({ account: to, balance: amount, reserved: 0, earned: amount })
    .onConflict((conflict) =>
      conflict.column('account').doUpdateSet((set) => ({
        balance: set('balances.balance', '+', set.ref('excluded.balance')),
        earned: set('balances.earned', '+', set.ref('excluded.earned')),
      })),
    )
    .execute();
}

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
    // `where true`: without it, SQLite would read the conflict clause as a join condition.
    await sql`
      insert into ${sql.table(table)} (${sql.ref(key)}, account, ${counts})
      select ${sql.ref(key)}, ${to}, ${counts} from ${sql.table(table)} where account = ${from}
      on conflict (${sql.ref(key)}, account) do update set ${added}`.execute(transaction);
    await transaction.deleteFrom(table).where('account', '=', from).execute();
  }
}
