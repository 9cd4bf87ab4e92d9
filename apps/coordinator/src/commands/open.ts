/** `withDatabase`: opens the database of the settings for the time of a command. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from '../config/config.js';
import { StartupError } from '../config/startup-error.js';
import { type DatabaseTarget, openDatabase } from '../database/connection/open-database.js';
import type { Database } from '../database/tables.js';

/** The coordinator's folder in the data directory, with the database file, keys and images. */
export function coordinatorDirectory({ dataDir }: Pick<Config, 'dataDir'>): string {
  return join(dataDir, 'coordinator');
}

/** PostgreSQL at `DATABASE_URL`, else the file in the data directory. */
export function databaseTarget(config: Pick<Config, 'dataDir' | 'databaseUrl'>): DatabaseTarget {
  return config.databaseUrl === null ? { file: join(coordinatorDirectory(config), 'coordinator.db') } : { url: config.databaseUrl };
}

/** Opens an existing database, runs `work` and closes it. Pending migrations are applied. Throws StartupError. */
export async function withDatabase<T>(
  config: Pick<Config, 'dataDir' | 'databaseUrl'>,
  work: (database: Database) => Promise<T>,
): Promise<T> {
  const target = databaseTarget(config);
  if ('file' in target && !existsSync(target.file)) {
    throw new StartupError(`There is no database ${target.file}; set DATA_DIR or DATABASE_URL.`);
  }
  const database = await openDatabase(target);
  try {
    return await work(database);
  } finally {
    await database.destroy();
  }
}
