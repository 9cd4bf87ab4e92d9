/**
 * Maintains the totals of the statistics windows (24 h, 7 d, 30 d, all) per account and for the network, from the sums of hours.
 *
 * `foldJobs` adds the sums of new jobs. Hours that have left a window are subtracted. Writers first lock the four rows of
 * `network_totals`, one per window.
 */
import { type RawBuilder, sql } from 'kysely';
import { addOnConflict, replaceOnConflict, rowWriter } from '../connection/batch-statements.js';
import { locked } from '../connection/row-lock.js';
import type { Activity, StatsWindow } from '../tables/ledger.js';
import type { Database, Tables } from '../tables.js';
import { ACTIVITY, addActivity, noActivity, WINDOW_HOURS } from './activity.js';

type MinuteRow = Tables['minute_totals'];
type HourRow = Tables['account_hours'];
type NetworkRow = Tables['network_totals'];
type AccountRow = Tables['account_totals'];

const NETWORK_COLUMNS = ['hour', 'active_accounts', ...ACTIVITY] as const satisfies readonly (keyof NetworkRow)[];

type WriteTotals = (transaction: Database, minutes: readonly MinuteRow[], hours: readonly HourRow[]) => Promise<void>;

/** Creates a function that adds to the totals of minutes, hours and windows. It caches compiled SQL, so each dialect needs its own. */
export function totalsWriter(): WriteTotals {
  const minuteCounts = ['requests', 'prompt_tokens', 'completion_tokens'] as const;
  const minuteRows = rowWriter('minute_totals', ['minute', ...minuteCounts], addOnConflict('minute_totals', ['minute'], minuteCounts));
  const hourRows = rowWriter(
    'account_hours',
    ['hour', 'account', ...ACTIVITY],
    addOnConflict('account_hours', ['hour', 'account'], ACTIVITY),
  );
  const addToAccount = addOnConflict('account_totals', ['window', 'account'], ACTIVITY);
  const accountRows = rowWriter('account_totals', ['window', 'account', ...ACTIVITY], (insert) =>
    addToAccount(insert).returning(['window', 'account', 'requests', 'served_jobs']),
  );
  const networkRows = rowWriter('network_totals', ['window', ...NETWORK_COLUMNS], replaceOnConflict(['window'], NETWORK_COLUMNS));
  return async (transaction, minutes, hours) => {
    const network = await lockNetwork(transaction);
    await advance(
      transaction,
      network,
      hours.reduce((newest, row) => Math.max(newest, row.hour), 0),
    );
    const added = new Map<string, AccountRow>();
    for (const total of network) {
      const oldest = oldestHour(total.window, total.hour);
      for (const hour of hours) {
        if (hour.hour < oldest) continue;
        addActivity(rowOf(added, total.window, hour.account), hour);
        addActivity(total, hour);
      }
    }
    const updated = await accountRows.write(transaction, [...added.values()]);
    await minuteRows.write(transaction, minutes);
    await hourRows.write(transaction, hours);
    for (const { window, account, requests, served_jobs } of updated as Pick<
      AccountRow,
      'window' | 'account' | 'requests' | 'served_jobs'
    >[]) {
      // A row whose counts equal the added ones is new, so the account has become active in the window.
      const more = rowOf(added, window, account);
      if (requests !== more.requests || served_jobs !== more.served_jobs) continue;
      const total = network.find((row) => row.window === window);
      if (total !== undefined) total.active_accounts++;
    }
    await networkRows.write(transaction, network);
  };
}

function rowOf(rows: Map<string, AccountRow>, window: StatsWindow, account: string): AccountRow {
  const key = `${window} ${account}`;
  let row = rows.get(key);
  if (row === undefined) {
    row = { window, account, ...noActivity() };
    rows.set(key, row);
  }
  return row;
}

/** Moves the windows forward to this hour, and subtracts hours that leave them. Needed when no jobs are folded. */
export async function advanceWindows(database: Database, hour: number): Promise<void> {
  const { hour: newest } = await database.selectFrom('network_totals').select('hour').where('window', '=', '24h').executeTakeFirstOrThrow();
  if (newest >= hour) return;
  await database.transaction().execute(async (transaction) => {
    const network = await lockNetwork(transaction);
    await advance(transaction, network, hour);
    for (const { window, ...row } of network) {
      await transaction.updateTable('network_totals').set(row).where('window', '=', window).execute();
    }
  });
}

/** Reads the four rows of `network_totals`, and locks them until the transaction ends. */
export function lockNetwork(transaction: Database): Promise<NetworkRow[]> {
  return locked(
    transaction,
    transaction
      .selectFrom('network_totals')
      .select(['window', ...NETWORK_COLUMNS])
      .orderBy('window'),
    'update',
  ).execute();
}

/** First hour of a window whose last hour is `newest`. */
export function oldestHour(window: StatsWindow, newest: number): number {
  const span = WINDOW_HOURS[window];
  return span === null ? 0 : Math.max(0, newest - span);
}

async function advance(transaction: Database, network: readonly NetworkRow[], hour: number): Promise<void> {
  for (const total of network) {
    if (total.hour >= hour) continue;
    const from = oldestHour(total.window, total.hour);
    const to = oldestHour(total.window, hour);
    total.hour = hour;
    if (from < to) await subtractHours(transaction, total, from, to);
  }
}

/** Subtracts the hours from `from` (included) to `to` (excluded) from one window. */
async function subtractHours(transaction: Database, total: NetworkRow, from: number, to: number): Promise<void> {
  const sums = await transaction
    .selectFrom('account_hours')
    .select((select) => ACTIVITY.map((name) => select.fn.sum<number | null>(name).as(name)))
    .where('hour', '>=', from)
    .where('hour', '<', to)
    .executeTakeFirstOrThrow();
  if (sums.requests === null) return;
  for (const name of ACTIVITY) total[name] -= sums[name] ?? 0;
  const leaving = transaction
    .selectFrom('account_hours')
    .select('account')
    .select((select) => ACTIVITY.map((name) => select.fn.sum<number>(name).as(name)))
    .where('hour', '>=', from)
    .where('hour', '<', to)
    .groupBy('account');
  const less = Object.fromEntries(
    ACTIVITY.map((name) => [name, sql`${sql.ref(`account_totals.${name}`)} - ${sql.ref(`leaving.${name}`)}`]),
  ) as Record<keyof Activity, RawBuilder<number>>;
  await transaction
    .updateTable('account_totals')
    .from(leaving.as('leaving'))
    .set(less)
    .whereRef('account_totals.account', '=', 'leaving.account')
    .where('account_totals.window', '=', total.window)
    .execute();
  const deleted = await transaction
    .deleteFrom('account_totals')
    .where('window', '=', total.window)
    .where('requests', '=', 0)
    .where('served_jobs', '=', 0)
    .where('account', 'in', (select) =>
      select.selectFrom('account_hours').select('account').where('hour', '>=', from).where('hour', '<', to),
    )
    .executeTakeFirst();
  total.active_accounts -= Number(deleted.numDeletedRows);
}
