/** Index for an account's jobs by provider and day. */
import { type Kysely, type Migration, sql } from 'kysely';

export const earningsByMachine: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createIndex('jobs_by_earner')
      .on('jobs')
      .columns(['earner', 'ended_at'])
      .where(sql.ref('state'), '=', sql.lit('settled'))
      .execute();
  },
};
