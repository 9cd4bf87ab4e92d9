/** Creates the queue of settled jobs that are not yet in the roll-ups and the fee account. Empty at first: earlier jobs are in both. */
import { type Kysely, type Migration, sql } from 'kysely';
import { dialectOf } from '../connection/dialect.js';

export const unfoldedJobs: Migration = {
  async up(db: Kysely<unknown>) {
    const table = db.schema.createTable('unfolded_jobs').addColumn('job_id', 'text', (column) => column.notNull().primaryKey());
    // `without rowid`: SQLite stores one B-tree instead of a table and an index.
    await (dialectOf(db) === 'sqlite' ? table.modifyEnd(sql`without rowid`) : table).execute();
  },
};
