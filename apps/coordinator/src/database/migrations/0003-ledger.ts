/** Creates the ledger's tables: jobs with reservations, postings, balances, prices, deposits, withdrawals, and owners of providers. */
import { type Kysely, type Migration, sql } from 'kysely';
import { dialectOf } from '../connection/dialect.js';

export const ledger: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('jobs')
      .addColumn('job_id', 'text', (column) => column.primaryKey())
      .addColumn('account_id', 'text', (column) => column.notNull())
      .addColumn('api_key_id', 'text', (column) => column.notNull())
      .addColumn('model', 'text', (column) => column.notNull())
      .addColumn('endpoint', 'text', (column) => column.notNull())
      .addColumn('state', 'text', (column) => column.notNull().check(sql`state in ('reserved', 'settled', 'released')`))
      .addColumn('amount', 'bigint', (column) => column.notNull().check(sql`amount >= 0`))
      .addColumn('price_id', 'text', (column) => column.notNull())
      .addColumn('prompt_per_million', 'bigint', (column) => column.notNull())
      .addColumn('completion_per_million', 'bigint', (column) => column.notNull())
      .addColumn('per_image', 'bigint', (column) => column.notNull())
      .addColumn('max_prompt_tokens', 'bigint', (column) => column.notNull())
      .addColumn('max_completion_tokens', 'bigint', (column) => column.notNull())
      .addColumn('max_images', 'bigint', (column) => column.notNull())
      .addColumn('holder', 'text', (column) => column.notNull())
      .addColumn('reserved_at', 'bigint', (column) => column.notNull())
      .addColumn('ended_at', 'bigint')
      .addColumn('provider_id', 'text')
      .addColumn('earner', 'text')
      .addColumn('prompt_tokens', 'bigint', (column) => column.notNull())
      .addColumn('completion_tokens', 'bigint', (column) => column.notNull())
      .addColumn('hidden_tokens', 'bigint', (column) => column.notNull())
      .addColumn('cached_tokens', 'bigint', (column) => column.notNull())
      .addColumn('images', 'bigint', (column) => column.notNull())
      .addColumn('cost', 'bigint', (column) => column.notNull())
      .addColumn('earned', 'bigint', (column) => column.notNull())
      .addColumn('fee', 'bigint', (column) => column.notNull())
      .addCheckConstraint('jobs_cost_within_hold', sql`cost >= 0 and cost <= amount`)
      .addCheckConstraint('jobs_cost_is_shared_out', sql`cost = earned + fee and earned >= 0 and fee >= 0`)
      .execute();
    await db.schema
      .createIndex('jobs_by_account')
      .on('jobs')
      .columns(['account_id', 'ended_at', 'job_id'])
      .where(sql.ref('state'), '=', sql.lit('settled'))
      .execute();
    await db.schema.createIndex('jobs_held').on('jobs').column('reserved_at').where(sql.ref('state'), '=', sql.lit('reserved')).execute();
    await db.schema.createIndex('jobs_by_end').on('jobs').column('ended_at').where(sql.ref('ended_at'), 'is not', null).execute();

    const postgres = dialectOf(db) === 'postgres';
    await db.schema
      .createTable('postings')
      // SQLite generates keys only for a primary key of exactly the type `integer`.
      .addColumn('seq', postgres ? 'bigserial' : 'integer', (column) => column.primaryKey())
      .addColumn('event', 'text', (column) => column.notNull())
      .addColumn('account', 'text', (column) => column.notNull())
      .addColumn('amount', 'bigint', (column) => column.notNull())
      .addColumn('earned', 'bigint', (column) => column.notNull())
      .addColumn('at', 'bigint', (column) => column.notNull())
      .execute();
    await db.schema.createIndex('postings_by_time').on('postings').column('at').execute();
    await db.schema
      .createTable('posting_openings')
      .addColumn('account', 'text', (column) => column.primaryKey())
      .addColumn('amount', 'bigint', (column) => column.notNull())
      .addColumn('earned', 'bigint', (column) => column.notNull())
      .execute();
    await db.schema
      .createTable('balances')
      .addColumn('account', 'text', (column) => column.primaryKey())
      .addColumn('balance', 'bigint', (column) => column.notNull())
      .addColumn('reserved', 'bigint', (column) => column.notNull())
      .addColumn('earned', 'bigint', (column) => column.notNull())
      // Safeguard against faults in code: only the ledger's internal accounts can be negative.
      .addCheckConstraint(
        'balances_cover_holds',
        sql`account like 'system:%' or (reserved >= 0 and balance >= reserved and earned >= 0 and earned <= balance)`,
      )
      .execute();
    await db.schema
      .createTable('key_spend')
      .addColumn('api_key_id', 'text', (column) => column.primaryKey())
      .addColumn('spent', 'bigint', (column) => column.notNull())
      .addColumn('held', 'bigint', (column) => column.notNull().check(sql`held >= 0`))
      .addColumn('spent_pruned', 'bigint', (column) => column.notNull())
      .execute();
    await db.schema
      .createTable('deposits')
      .addColumn('event_id', 'text', (column) => column.primaryKey())
      .addColumn('account_id', 'text', (column) => column.notNull())
      .addColumn('amount', 'bigint', (column) => column.notNull().check(sql`amount > 0`))
      .addColumn('source', 'text', (column) => column.notNull())
      .addColumn('at', 'bigint', (column) => column.notNull())
      .execute();
    await db.schema.createIndex('deposits_by_account').on('deposits').columns(['account_id', 'at']).execute();
    await db.schema
      .createTable('withdrawals')
      .addColumn('id', 'text', (column) => column.primaryKey())
      .addColumn('account_id', 'text', (column) => column.notNull())
      .addColumn('amount', 'bigint', (column) => column.notNull().check(sql`amount > 0`))
      .addColumn('state', 'text', (column) => column.notNull().check(sql`state in ('requested', 'paid', 'rejected')`))
      .addColumn('requested_at', 'bigint', (column) => column.notNull())
      .addColumn('ended_at', 'bigint')
      .execute();
    await db.schema.createIndex('withdrawals_by_account').on('withdrawals').columns(['account_id', 'requested_at']).execute();
    await db.schema.createIndex('withdrawals_by_state').on('withdrawals').columns(['state', 'requested_at']).execute();
    await db.schema
      .createTable('provider_owners')
      .addColumn('provider_id', 'text', (column) => column.primaryKey())
      .addColumn('account_id', 'text', (column) => column.notNull())
      .addColumn('first_owner', 'text')
      .addColumn('linked_at', 'bigint')
      .execute();
    await db.schema.createIndex('provider_owners_by_account').on('provider_owners').column('account_id').execute();
    await db.schema
      .createTable('prices')
      .addColumn('id', 'text', (column) => column.primaryKey())
      .addColumn('model', 'text', (column) => column.notNull())
      .addColumn('prompt_per_million', 'bigint', (column) => column.notNull())
      .addColumn('completion_per_million', 'bigint', (column) => column.notNull())
      .addColumn('per_image', 'bigint', (column) => column.notNull())
      .addColumn('valid_from', 'bigint', (column) => column.notNull())
      .addColumn('version', 'bigint', (column) => column.notNull())
      .addUniqueConstraint('prices_in_order', ['model', 'version'])
      .execute();
    await db.schema
      .createTable('ledger_marks')
      .addColumn('name', 'text', (column) => column.primaryKey())
      .addColumn('at', 'bigint', (column) => column.notNull())
      .execute();
    await db.schema
      .createTable('ledger_holders')
      .addColumn('id', 'text', (column) => column.primaryKey())
      .addColumn('seen_at', 'bigint', (column) => column.notNull())
      .execute();
  },
};
