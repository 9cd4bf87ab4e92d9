/** `restoreTarget` throws StartupError for a PostgreSQL database that is in use or cannot take the dump of a backup. */
import { StartupError } from '../config/startup-error.js';
import { type PostgresTarget, postgresTarget } from '../database/backup/postgres-snapshot.js';
import { unknownMigrations } from '../database/migrations/schema-state.js';
import { STORED_DATA } from '../database/privacy/stored-data.js';
import type { Manifest } from './manifest.js';

/** A table that coordinators of earlier versions have, and that a migration drops. */
const FORMER_TABLE = 'auth_device_codes';
const MAX_NAMED_TABLES = 20;

export async function restoreTarget(url: string, { database }: Manifest): Promise<PostgresTarget> {
  const target = await postgresTarget(url);
  if (target.coordinators > 0) {
    throw new StartupError(`A coordinator is connected to the database (${target.coordinators} connections). Stop all coordinators first.`);
  }
  const foreign = foreignTables(target);
  if (foreign.length > 0) {
    const names =
      foreign.slice(0, MAX_NAMED_TABLES).join(', ') +
      (foreign.length > MAX_NAMED_TABLES ? `, and ${foreign.length - MAX_NAMED_TABLES} more` : '');
    throw new StartupError(
      `The schema ${target.schema} has tables that are not of a coordinator: ${names}. Restore into a database or schema of its own.`,
    );
  }
  if (database.kind !== 'postgres') throw new Error('the backup has no dump');
  if (target.serverMajor < Number.parseInt(database.server_version, 10)) {
    throw new StartupError(
      `The backup is of PostgreSQL ${database.server_version}, and this server is the older version ${target.serverVersion}.`,
    );
  }
  if (target.schema !== database.schema) {
    throw new StartupError(
      `The backup is of the schema ${database.schema}, and the user of DATABASE_URL uses ${target.schema}: set its search_path.`,
    );
  }
  return target;
}

/**
 * Tables of other applications in the schema. Empty if a newer coordinator used the schema, because its tables cannot be told apart from
 * those of other applications.
 */
function foreignTables({ tables, migrations }: PostgresTarget): string[] {
  if (unknownMigrations(migrations).length > 0) return [];
  return tables.filter((name) => !STORED_DATA.has(name) && name !== FORMER_TABLE);
}
