/** Reads earnings of providers and accounts from roll-up tables (sums per time), and finds owners who earn mostly from one payer. */
import { sql } from 'kysely';
import { HOUR_MS } from '../time-units.js';
import { PROVIDER_COUNTS, QUARTER_MS } from './ledger/activity.js';
import { foldJobs } from './ledger/fold-jobs.js';
import { isUnclaimed, providerOfUnclaimed, unclaimedAccount } from './ledger/unclaimed-accounts.js';
import type { Database, Tables } from './tables.js';
import { earnerNames } from './usage-repository.js';

export type EarningsQuarter = Omit<Tables['machine_quarters'], 'provider_id' | 'earner'>;

/** Earnings of an account from a provider since `from` (milliseconds since 1970): a row per quarter of an hour and model, oldest first. */
export async function providerQuarters(
  database: Database,
  { providerId, accountId, from }: { readonly providerId: string; readonly accountId: string; readonly from: number },
): Promise<EarningsQuarter[]> {
  await foldJobs(database);
  return database
    .selectFrom('machine_quarters')
    .select(['quarter', 'model', ...PROVIDER_COUNTS.map((name) => sql<number>`sum(${sql.ref(name)})`.as(name))])
    .where('provider_id', '=', providerId)
    .where('earner', 'in', await earnerNames(database, accountId))
    .where('quarter', '>=', Math.floor(from / QUARTER_MS))
    .groupBy(['quarter', 'model'])
    .orderBy('quarter')
    .orderBy('model')
    .execute();
}

/** Lifetime earnings of an account from all its providers (micro-USD), and the number of its providers now. */
export async function accountEarnings(
  database: Database,
  accountId: string,
): Promise<{ readonly providers: number; readonly total: number }> {
  await foldJobs(database);
  const total = await database
    .selectFrom('account_totals')
    .select('earned')
    .where('window', '=', 'all')
    .where('account', '=', accountId)
    .executeTakeFirst();
  const providers = await database
    .selectFrom('provider_owners')
    .select((select) => select.fn.countAll<number>().as('count'))
    .where('account_id', '=', accountId)
    .executeTakeFirst();
  return { providers: providers?.count ?? 0, total: total?.earned ?? 0 };
}

/** Earnings that a provider's machine may show, in micro-USD. */
export interface ProviderEarnings {
  /** `account`: the earnings of the owner's account, other machines included. `machine`: the provider has no owner. */
  readonly of: 'machine' | 'account';
  /** Since midnight UTC. */
  readonly today: number;
  readonly total: number;
}

const HOURS_OF_A_DAY = 24;

export async function readProviderEarnings(database: Database, providerId: string, now: number): Promise<ProviderEarnings> {
  await foldJobs(database);
  const owner = await database.selectFrom('provider_owners').select('account_id').where('provider_id', '=', providerId).executeTakeFirst();
  const account = owner?.account_id ?? unclaimedAccount(providerId);
  const hour = Math.floor(now / HOUR_MS);
  const today = await database
    .selectFrom('account_hours')
    .select((select) => select.fn.sum<number | null>('earned').as('earned'))
    .where('hour', '>=', hour - (hour % HOURS_OF_A_DAY))
    .where('hour', '<=', hour)
    .where('account', '=', account)
    .executeTakeFirst();
  const total = await database
    .selectFrom('account_totals')
    .select('earned')
    .where('window', '=', 'all')
    .where('account', '=', account)
    .executeTakeFirst();
  return { of: isUnclaimed(account) ? 'machine' : 'account', today: today?.earned ?? 0, total: total?.earned ?? 0 };
}

export interface AccountName {
  readonly id: string;
  readonly name: string;
  readonly email: string | null;
}

/** Earnings of one owner that one payer has paid. Amounts in micro-USD. */
interface PayerConcentration {
  /** Null: the provider earned without an owner. */
  readonly owner: AccountName | null;
  readonly providerId: string | null;
  readonly payer: AccountName;
  /** Earnings of the owner from this payer. */
  readonly earned: number;
  /** Earnings of the owner from all payers. */
  readonly ownerEarned: number;
  /** Earnings of all owners from this payer. */
  readonly payerPaid: number;
}

interface ConcentrationRow {
  readonly earner: string;
  readonly payer: string;
  readonly earned: number;
  readonly owner_earned: number;
  readonly payer_paid: number;
}

/**
 * Pairs of owner and payer in which the payer has paid at least `minSharePercent` of the owner's earnings, and at least `minEarned`.
 *
 * Counts earnings since the day `from` (days since 1970). The largest come first.
 */
export async function earningsConcentration(
  database: Database,
  {
    from,
    minSharePercent,
    minEarned,
    limit,
  }: { readonly from: number; readonly minSharePercent: number; readonly minEarned: number; readonly limit: number },
): Promise<PayerConcentration[]> {
  const { rows } = await sql<ConcentrationRow>`
    with pairs as (
      select earner, payer, sum(earned) as earned from payer_earnings where day >= ${from} group by earner, payer
    ),
    owners as (select earner, sum(earned) as earned from pairs group by earner),
    payers as (select payer, sum(earned) as paid from pairs group by payer)
    select pairs.earner, pairs.payer, pairs.earned, owners.earned as owner_earned, payers.paid as payer_paid
    from pairs join owners on owners.earner = pairs.earner join payers on payers.payer = pairs.payer
    where pairs.earned > 0 and pairs.earned >= ${minEarned} and pairs.earned * 100 >= owners.earned * cast(${minSharePercent} as bigint)
    order by pairs.earned desc, pairs.earner, pairs.payer limit ${limit}`.execute(database);
  const names = await namesOf(
    database,
    rows.flatMap(({ earner, payer }) => [earner, payer]),
  );
  const nameOf = (id: string): AccountName => names.get(id) ?? { id, name: '', email: null };
  return rows.map((row) => ({
    owner: isUnclaimed(row.earner) ? null : nameOf(row.earner),
    providerId: isUnclaimed(row.earner) ? providerOfUnclaimed(row.earner) : null,
    payer: nameOf(row.payer),
    earned: row.earned,
    ownerEarned: row.owner_earned,
    payerPaid: row.payer_paid,
  }));
}

async function namesOf(database: Database, ids: readonly string[]): Promise<ReadonlyMap<string, AccountName>> {
  if (ids.length === 0) return new Map();
  const rows = await database
    .selectFrom('accounts')
    .leftJoin('auth_users', 'auth_users.id', 'accounts.id')
    .select(['accounts.id', 'accounts.name', 'auth_users.name as user_name', 'auth_users.email'])
    .where('accounts.id', 'in', [...new Set(ids)])
    .execute();
  return new Map(rows.map(({ id, name, user_name, email }) => [id, { id, name: user_name ?? name, email }]));
}
