/** Creates the index for an account's earnings by provider and day. */
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
