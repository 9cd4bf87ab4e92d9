/** An owner looks at what each machine earned on each day: the index that finds an account's part of the jobs. */
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
