/** What backup and restore read from PostgreSQL: `withSnapshot` lets a backup dump and count one state, `postgresTarget` checks a target. */
import { Kysely, sql } from 'kysely';
import { StartupError } from '../../config/startup-error.js';
import { refusalReason } from '../connection/open-database.js';
import { COORDINATOR_APPLICATION, postgresDialect } from '../connection/postgres.js';
import type { Database, Tables } from '../tables.js';
import { type DatabaseFigures, databaseFigures } from './database-figures.js';
import type { SecretRow } from './restored-rows.js';

/** Application name of the commands `backup` and `restore` in `pg_stat_activity`. */
export const BACKUP_APPLICATION = 'inference-coordinator-backup';

export interface PostgresSnapshot {
  /** Snapshot id for `pg_dump --snapshot`, valid until `use` ends. */
  readonly id: string;
  /** For example `15.4`. */
  readonly serverVersion: string;
  readonly serverMajor: number;
  readonly schema: string;
  readonly secrets: readonly SecretRow[];
}

/** Runs `use`, which dumps the snapshot, and reads the figures of the same snapshot. Throws {@link StartupError}. */
export async function withSnapshot(
  url: string,
  use: (snapshot: PostgresSnapshot) => Promise<void>,
): Promise<{ readonly figures: DatabaseFigures; readonly snapshot: PostgresSnapshot }> {
  return onConnection(url, (connection) =>
    connection
      .transaction()
      .setIsolationLevel('repeatable read')
      .setAccessMode('read only')
      .execute(async (view) => {
        const snapshot = await readSnapshot(view);
        await use(snapshot);
        return { figures: await databaseFigures(view), snapshot };
      }),
  );
}

async function readSnapshot(view: Database): Promise<PostgresSnapshot> {
  const { rows } = await sql<{ id: string; schema: string | null; has_secrets: boolean }>`select pg_export_snapshot() as id,
    current_schema() as schema, to_regclass('secrets') is not null as has_secrets`.execute(view);
  const [row] = rows;
  if (row === undefined || row.schema === null || !row.has_secrets) throw new StartupError('The database is not one of a coordinator.');
  const secrets = await view.selectFrom('secrets').select(['name', 'value']).orderBy('name').execute();
  return { id: row.id, schema: row.schema, secrets, ...(await serverVersionOf(view)) };
}

export interface PostgresTarget {
  readonly serverVersion: string;
  readonly serverMajor: number;
  readonly schema: string;
  /** Tables of the schema, without tables of extensions. */
  readonly tables: readonly string[];
  /** Applied migrations; empty if the schema is not a coordinator's. */
  readonly migrations: readonly string[];
  readonly coordinators: number;
}

/** Facts about the database to restore into. Throws {@link StartupError} if the database cannot be read. */
export async function postgresTarget(url: string): Promise<PostgresTarget> {
  return onConnection(url, async (connection) => {
    const { rows } = await sql<{ schema: string | null; coordinators: number }>`select current_schema() as schema,
      (select count(*) from pg_stat_activity where datname = current_database()
        and application_name = ${COORDINATOR_APPLICATION}) as coordinators`.execute(connection);
    const { schema = null, coordinators = 0 } = rows[0] ?? {};
    if (schema === null) throw new StartupError('The database has no schema that this user may use.');
    const { rows: tables } = await sql<{ name: string }>`select relname as name from pg_class
      where relnamespace = ${schema}::regnamespace and relkind in ('r', 'p')
        and not exists (select 1 from pg_depend where classid = 'pg_class'::regclass and objid = pg_class.oid and deptype = 'e')
      order by relname`.execute(connection);
    // Databases of the first release have only `kysely_migration`.
    const history = ['schema_migrations', 'kysely_migration'].find((one) => tables.some(({ name }) => name === one));
    const { rows: applied } =
      history === undefined ? { rows: [] } : await sql<{ name: string }>`select name from ${sql.id(schema, history)}`.execute(connection);
    const migrations = applied.map(({ name }) => name);
    return { schema, coordinators, migrations, tables: tables.map(({ name }) => name), ...(await serverVersionOf(connection)) };
  });
}

async function serverVersionOf(connection: Database): Promise<{ readonly serverVersion: string; readonly serverMajor: number }> {
  const { rows } = await sql<{ version: string }>`select current_setting('server_version') as version`.execute(connection);
  const serverVersion = rows[0]?.version.split(' ')[0] ?? '';
  return { serverVersion, serverMajor: Number.parseInt(serverVersion, 10) };
}

async function onConnection<T>(url: string, work: (connection: Database) => Promise<T>): Promise<T> {
  const database = new Kysely<Tables>({
    dialect: postgresDialect({ url, maxConnections: 1, statementTimeoutMs: 0, applicationName: BACKUP_APPLICATION }),
  });
  try {
    return await database.connection().execute(async (connection) => {
      // `pg_dump` runs while this transaction is idle, and may take longer than the limit for coordinators.
      await sql`set idle_in_transaction_session_timeout = 0`.execute(connection);
      return work(connection);
    });
  } catch (error) {
    if (error instanceof StartupError) throw error;
    throw new StartupError(`The database cannot be read: ${refusalReason(error)}.`, { cause: error });
  } finally {
    await database.destroy();
  }
}
