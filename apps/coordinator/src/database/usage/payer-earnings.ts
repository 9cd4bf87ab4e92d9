/** Reads who pays whom, from the roll-up of earnings per payer and day. */
import { sql } from 'kysely';
import { isUnclaimed, providerOfUnclaimed } from '../ledger/unclaimed-accounts.js';
import type { Database } from '../tables.js';

export interface AccountName {
  readonly id: string;
  readonly name: string;
  readonly email: string | null;
}

/** One owner and one payer. Amounts are micro-USD. */
export interface PayerConcentration {
  /** Null: an unclaimed machine. */
  readonly owner: AccountName | null;
  readonly providerId: string | null;
  readonly payer: AccountName;
  readonly earned: number;
  readonly ownerEarned: number;
  readonly payerPaid: number;
}

interface Row {
  readonly earner: string;
  readonly payer: string;
  readonly earned: number;
  readonly owner_earned: number;
  readonly payer_paid: number;
}

/**
 * Owners who earned at least `minSharePercent` of their earnings, and at least `minEarned`, from one payer since the day `from`
 * (UTC days since 1970). The largest amounts first.
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
  const { rows } = await sql<Row>`
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
