/** Queue of settled jobs not yet in roll-ups and fee account. Starts empty: earlier jobs are folded. */
import { type Kysely, type Migration, sql } from 'kysely';
import { dialectOf } from '../connection/dialect.js';

export const unfoldedJobs: Migration = {
  async up(db: Kysely<unknown>) {
    const table = db.schema.createTable('unfolded_jobs').addColumn('job_id', 'text', (column) => column.notNull().primaryKey());
    // Without a hidden second tree per row.
    await (dialectOf(db) === 'sqlite' ? table.modifyEnd(sql`without rowid`) : table).execute();
  },
};
