/**
 * For links of providers to accounts: creates the tables of device authorization codes (RFC 8628), tokens, accounts for earnings
 * between two owners, and the roll-up per provider.
 */
import { type Kysely, type Migration, sql } from 'kysely';

export const machineLinks: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('device_codes')
      .addColumn('hash', 'text', (column) => column.primaryKey())
      .addColumn('user_code', 'text', (column) => column.notNull().unique())
      .addColumn('machine_name', 'text', (column) => column.notNull())
      .addColumn('chip_name', 'text')
      .addColumn('address', 'text')
      .addColumn('requested_at', 'bigint', (column) => column.notNull())
      .addColumn('expires_at', 'bigint', (column) => column.notNull())
      .addColumn('interval_ms', 'bigint', (column) => column.notNull())
      .addColumn('polled_at', 'bigint')
      .addColumn('account_id', 'text', (column) => column.references('accounts.id'))
      .addColumn('approved_at', 'bigint')
      .addColumn('denied_at', 'bigint')
      .addColumn('token_hash', 'text')
      .execute();
    await db.schema.createIndex('device_codes_by_expiry').on('device_codes').column('expires_at').execute();
    await db.schema
      .createTable('machine_tokens')
      .addColumn('hash', 'text', (column) => column.primaryKey())
      .addColumn('account_id', 'text', (column) => column.notNull().references('accounts.id'))
      .addColumn('machine_name', 'text', (column) => column.notNull())
      .addColumn('provider_id', 'text')
      .addColumn('created_at', 'bigint', (column) => column.notNull())
      .addColumn('bound_at', 'bigint')
      .addColumn('revoked_at', 'bigint')
      .execute();
    for (const column of ['account_id', 'provider_id']) {
      await db.schema.createIndex(`machine_tokens_by_${column}`).on('machine_tokens').column(column).execute();
    }
    await db.schema
      .createTable('unclaimed_accounts')
      .addColumn('account', 'text', (column) => column.primaryKey())
      .addColumn('provider_id', 'text', (column) => column.notNull())
      .addColumn('since', 'bigint', (column) => column.notNull())
      .addColumn('claimed_by', 'text')
      .execute();
    for (const column of ['provider_id', 'claimed_by']) {
      await db.schema.createIndex(`unclaimed_accounts_by_${column}`).on('unclaimed_accounts').column(column).execute();
    }
    await createMachineQuarters(db);
    // Table of better-auth's own device authorization, which gave agents a full session of the owner.
    await db.schema.dropTable('auth_device_codes').execute();
  },
};

const COUNTS = ['jobs', 'prompt_tokens', 'completion_tokens', 'images', 'earned'] as const;

/** Creates `machine_quarters`, and fills it from stored jobs, so that owners see earlier work of their providers, too. */
async function createMachineQuarters(db: Kysely<unknown>): Promise<void> {
  let table = db.schema
    .createTable('machine_quarters')
    .addColumn('provider_id', 'text', (column) => column.notNull())
    .addColumn('quarter', 'bigint', (column) => column.notNull())
    .addColumn('model', 'text', (column) => column.notNull())
    .addColumn('earner', 'text', (column) => column.notNull());
  for (const count of COUNTS) table = table.addColumn(count, 'bigint', (column) => column.notNull());
  await table.addPrimaryKeyConstraint('machine_quarters_key', ['provider_id', 'quarter', 'model', 'earner']).execute();
  await db.schema.createIndex('machine_quarters_by_time').on('machine_quarters').column('quarter').execute();
  await sql`
    insert into machine_quarters (provider_id, quarter, model, earner, ${sql.join(COUNTS.map((name) => sql.ref(name)))})
    select provider_id, ended_at / 900000, model, earner,
      count(*), sum(prompt_tokens), sum(completion_tokens), sum(images), sum(earned)
    from jobs where state = 'settled' and provider_id is not null and earner is not null
    group by provider_id, ended_at / 900000, model, earner`.execute(db);
}
