/**
 * `writeHistory`: fills a new database with the totals (per minute, hour and window) of random jobs, without the jobs themselves.
 *
 * Public statistics need only the totals, and those of millions of jobs are written in seconds.
 */
import { addActivity, FOLDED_HOUR, noActivity, WINDOW_HOURS, WINDOWS } from '../../../apps/coordinator/src/database/ledger/activity.js';
import type { Activity } from '../../../apps/coordinator/src/database/tables/ledger.js';
import type { Database, Tables } from '../../../apps/coordinator/src/database/tables.js';

interface HistoryOptions {
  readonly jobs: number;
  readonly accounts: number;
  readonly providers: number;
  readonly days: number;
  /** End of the history, in milliseconds. */
  readonly now: number;
  readonly random: () => number;
}

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;
const RETAINED_MINUTES = 2 * 24 * 60;
/** Below SQLite's limit of 32,766 parameters. */
const ROWS_PER_INSERT = 500;

/** The database must be migrated and empty. Resolves to the number of written rows. */
export async function writeHistory(database: Database, options: HistoryOptions): Promise<number> {
  const newest = Math.floor(options.now / HOUR_MS);
  const history = draw(options, newest);
  const network = WINDOWS.map((window) => {
    const span = WINDOW_HOURS[window];
    const oldest = span === null ? FOLDED_HOUR : newest - span;
    const sums = new Map<string, Activity>();
    const total = noActivity();
    for (const [hour, accounts] of history.hours) {
      if (hour < oldest) continue;
      for (const [account, activity] of accounts) {
        addActivity(activityOf(sums, account), activity);
        addActivity(total, activity);
      }
    }
    return { sums, row: { window, hour: newest, active_accounts: sums.size, ...total } };
  });
  const accountHours = [...history.hours].flatMap(([hour, accounts]) =>
    [...accounts].map(([account, activity]) => ({ hour, account, ...activity })),
  );
  const accountTotals = network.flatMap(({ sums, row }) =>
    [...sums].map(([account, activity]) => ({ window: row.window, account, ...activity })),
  );
  await database.transaction().execute(async (transaction) => {
    await insert(transaction, 'minute_totals', [...history.minutes.values()]);
    await insert(transaction, 'account_hours', accountHours);
    await insert(transaction, 'account_totals', accountTotals);
    await transaction.deleteFrom('network_totals').execute();
    await insert(
      transaction,
      'network_totals',
      network.map(({ row }) => row),
    );
  });
  return history.minutes.size + accountHours.length + accountTotals.length + network.length;
}

interface History {
  /** Key: hour (hours since 1970), then account. Old hours are summed in `FOLDED_HOUR`. */
  readonly hours: Map<number, Map<string, Activity>>;
  readonly minutes: Map<number, Tables['minute_totals']>;
}

/** Busy accounts and providers are drawn more often, as in production. */
function draw({ jobs, accounts, providers, days, now, random }: HistoryOptions, newest: number): History {
  const hours = new Map<number, Map<string, Activity>>([[FOLDED_HOUR, new Map()]]);
  const minutes: History['minutes'] = new Map();
  const begin = now - days * 24 * HOUR_MS;
  const oldestKept = newest - Math.max(...WINDOWS.map((window) => WINDOW_HOURS[window] ?? 0));
  const newestMinute = Math.floor(now / MINUTE_MS);
  const consumerNames = Array.from({ length: accounts }, (_, index) => `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`);
  const providerNames = consumerNames.slice(-providers);
  for (let job = 0; job < jobs; job++) {
    const at = begin + Math.floor(((job + random()) / jobs) * (now - begin));
    const hour = Math.floor(at / HOUR_MS) < oldestKept ? FOLDED_HOUR : Math.floor(at / HOUR_MS);
    const minute = Math.floor(at / MINUTE_MS);
    const prompt = 50 + Math.floor(random() * 2000);
    const completion = 10 + Math.floor(random() * 500);
    const cost = Math.ceil((prompt * 100_000 + completion * 400_000) / 1_000_000);
    let accountsOfHour = hours.get(hour);
    if (accountsOfHour === undefined) {
      accountsOfHour = new Map();
      hours.set(hour, accountsOfHour);
    }
    const requested = activityOf(accountsOfHour, pick(consumerNames, random));
    requested.requests++;
    requested.prompt_tokens += prompt;
    requested.completion_tokens += completion;
    requested.spent += cost;
    const served = activityOf(accountsOfHour, pick(providerNames, random));
    served.served_jobs++;
    served.served_tokens += prompt + completion;
    served.earned += Math.floor(cost * 0.9);
    if (minute > newestMinute - RETAINED_MINUTES) {
      const row = minutes.get(minute) ?? { minute, requests: 0, prompt_tokens: 0, completion_tokens: 0 };
      row.requests++;
      row.prompt_tokens += prompt;
      row.completion_tokens += completion;
      minutes.set(minute, row);
    }
  }
  return { hours, minutes };
}

function activityOf(accounts: Map<string, Activity>, account: string): Activity {
  let activity = accounts.get(account);
  if (activity === undefined) {
    activity = noActivity();
    accounts.set(account, activity);
  }
  return activity;
}

function pick(names: readonly string[], random: () => number): string {
  return names[Math.floor(random() ** 2 * names.length)] as string;
}

async function insert<Table extends keyof Tables>(database: Database, table: Table, rows: readonly object[]): Promise<void> {
  for (let start = 0; start < rows.length; start += ROWS_PER_INSERT) {
    await database
      .insertInto(table)
      .values(rows.slice(start, start + ROWS_PER_INSERT) as never)
      .execute();
  }
}
