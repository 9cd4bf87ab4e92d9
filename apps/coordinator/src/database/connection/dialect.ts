/** `dialectOf`: which database is in use, for places where the SQL of the two databases differs. */
import { type Kysely, PostgresAdapter } from 'kysely';

export type Dialect = 'sqlite' | 'postgres';

export function dialectOf<T>(database: Kysely<T>): Dialect {
  return database.getExecutor().adapter instanceof PostgresAdapter ? 'postgres' : 'sqlite';
}
