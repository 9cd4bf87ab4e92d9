/** Vitest global setup: drops the PostgreSQL databases of the test processes at the end of the run. */
import { dropDatabasesOfChildren, whyUnreachable } from '../../apps/coordinator/test/support/fresh-database.js';

export async function teardown(): Promise<void> {
  if ((await whyUnreachable()) === null) await dropDatabasesOfChildren();
}
