/** Which models the newest jobs were of. */
import type { Database } from '../tables.js';

/** Jobs that are looked at, so that the answer takes milliseconds whatever the history. */
const JOBS = 2000;

/** Models of the newest jobs that ended since `from`, in milliseconds since 1970. */
export async function modelsOfLatestJobs(database: Database, from: number): Promise<readonly string[]> {
  const rows = await database
    .selectFrom((select) =>
      select.selectFrom('jobs').select('model').where('ended_at', '>=', from).orderBy('ended_at', 'desc').limit(JOBS).as('latest'),
    )
    .select('latest.model')
    .distinct()
    .execute();
  return rows.map(({ model }) => model);
}
