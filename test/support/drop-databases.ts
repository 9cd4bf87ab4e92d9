/** Global setup of a test run: at the end, PostgreSQL databases that its processes created are dropped. */
import { dropDatabasesOfChildren, whyUnreachable } from '../../apps/coordinator/test/support/fresh-database.js';

export async function teardown(): Promise<void> {
  if ((await whyUnreachable()) === null) await dropDatabasesOfChildren();
}
