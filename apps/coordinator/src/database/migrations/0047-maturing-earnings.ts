/**
 * Creates the tables of earnings per account and day (for maturity), and per payer and day.
 *
 * Earlier earnings get no rows in `pending_earnings`, so they can be withdrawn at once.
 */
import { type Kysely, type Migration, sql } from 'kysely';

const DAY_MS = sql.lit(86_400_000);

export const maturingEarnings: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('pending_earnings')
      .addColumn('account', 'text', (column) => column.notNull())
      .addColumn('day', 'bigint', (column) => column.notNull())
      .addColumn('amount', 'bigint', (column) => column.notNull().check(sql`amount >= 0`))
      .addPrimaryKeyConstraint('pending_earnings_key', ['account', 'day'])
      .execute();
    await db.schema.createIndex('pending_earnings_by_day').on('pending_earnings').column('day').execute();
    await db.schema
      .createTable('payer_earnings')
      .addColumn('earner', 'text', (column) => column.notNull())
      .addColumn('payer', 'text', (column) => column.notNull())
      .addColumn('day', 'bigint', (column) => column.notNull())
      .addColumn('earned', 'bigint', (column) => column.notNull())
      .addColumn('of_deposits', 'bigint', (column) => column.notNull())
      .addPrimaryKeyConstraint('payer_earnings_key', ['earner', 'payer', 'day'])
      .execute();
    await db.schema.createIndex('payer_earnings_by_day').on('payer_earnings').column('day').execute();
    const earner = sql`coalesce(owners.first_owner, unclaimed.claimed_by, jobs.earner)`;
    await sql`
      insert into payer_earnings (earner, payer, day, earned, of_deposits)
      select ${earner}, jobs.account_id, jobs.ended_at / ${DAY_MS}, sum(jobs.earned), 0
      from jobs
      left join provider_owners as owners on jobs.earner like 'provider:%' and owners.provider_id = substr(jobs.earner, 10)
      left join unclaimed_accounts as unclaimed on unclaimed.account = jobs.earner
      where jobs.state = 'settled' and jobs.earner is not null and jobs.earned > 0 and ${earner} <> jobs.account_id
      group by ${earner}, jobs.account_id, jobs.ended_at / ${DAY_MS}`.execute(db);
    await sql`
      insert into ledger_marks (name, at)
      select 'earnings_pending_since', max(ended_at) from jobs where state = 'settled' having max(ended_at) is not null`.execute(db);
  },
};
