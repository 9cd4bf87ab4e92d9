/** Creates the table of requests that were answered with an error: error codes and times, without error messages and content. */
import type { Kysely, Migration } from 'kysely';

export const failedRequests: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('failed_requests')
      .addColumn('job_id', 'text', (column) => column.primaryKey())
      .addColumn('account_id', 'text', (column) => column.notNull())
      .addColumn('api_key_id', 'text', (column) => column.notNull())
      .addColumn('model', 'text')
      .addColumn('endpoint', 'text', (column) => column.notNull())
      .addColumn('provider_id', 'text')
      .addColumn('is_sealed', 'integer', (column) => column.notNull())
      .addColumn('code', 'text', (column) => column.notNull())
      .addColumn('latency_ms', 'bigint', (column) => column.notNull())
      .addColumn('failed_at', 'bigint', (column) => column.notNull())
      .execute();
    await db.schema
      .createIndex('failed_requests_by_account')
      .on('failed_requests')
      .columns(['account_id', 'failed_at', 'job_id'])
      .execute();
    await db.schema.createIndex('failed_requests_by_time').on('failed_requests').column('failed_at').execute();
  },
};
