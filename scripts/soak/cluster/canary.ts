/** `findCanary`: searches log files and the database for the canary, a unique text in every prompt, because prompts must not be stored. */
import { sql } from 'kysely';
import { filesHolding } from '../../../test/support/files-holding.js';
import type { SoakCluster } from './soak-cluster.js';

/** Log files and tables that contain the canary. */
export async function findCanary({ network, database }: SoakCluster, canary: string): Promise<string[]> {
  const logs = filesHolding(network.logDir, canary).map((file) => `prompts in the log file ${file}`);
  const tables = await sql<{ name: string }>`select tablename as name from pg_tables where schemaname = 'public'`.execute(database);
  if (tables.rows.length === 0) throw new Error('the database has no tables');
  const found: string[] = [];
  for (const { name } of tables.rows) {
    const { rows } = await sql`select 1 from ${sql.table(name)} as r where r::text like ${`%${canary}%`} limit 1`.execute(database);
    if (rows.length > 0) found.push(`prompts in the table ${name}`);
  }
  return [...logs, ...found];
}
