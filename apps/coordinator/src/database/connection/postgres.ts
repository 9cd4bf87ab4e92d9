/** `postgresDialect`: Kysely dialect for PostgreSQL with a connection pool. Reads 64-bit integers as numbers, as on SQLite. */
import { CompiledQuery, type Dialect, PostgresDialect } from 'kysely';
import pg from 'pg';
import { preparedClient } from './prepared-client.js';

interface PostgresOptions {
  /** `postgres://user:password@host:port/database` */
  readonly url: string;
  readonly maxConnections?: number;
  /** Maximum duration of a statement; 0: no limit. Default: {@link STATEMENT_TIMEOUT_MS}. */
  readonly statementTimeoutMs?: number;
  /** Called when an idle connection breaks. The pool opens another one when needed. */
  readonly onConnectionLost?: (error: Error) => void;
  /** Name in `pg_stat_activity`. Default: {@link COORDINATOR_APPLICATION}. */
  readonly applicationName?: string;
}

/** Name of coordinators' connections in `pg_stat_activity`. */
export const COORDINATOR_APPLICATION = 'inference-coordinator';

const CONNECT_TIMEOUT_MS = 10_000;
const STATEMENT_TIMEOUT_MS = 30_000;
/**
 * The server closes a connection whose transaction is idle for longer, because its coordinator has probably stopped.
 *
 * Shorter than the 5 s (`ledgerMs`) that a request waits for the ledger, because the transaction's locks may block other coordinators.
 */
const IDLE_IN_TRANSACTION_MS = 3_000;
const MAX_CONNECTIONS = 10;

const { builtins } = pg.types;

/** Destroying the Kysely instance ends the pool. */
export function postgresDialect(options: PostgresOptions): Dialect {
  const pool = new pg.Pool({
    connectionString: options.url,
    max: options.maxConnections ?? MAX_CONNECTIONS,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    statement_timeout: options.statementTimeoutMs ?? STATEMENT_TIMEOUT_MS,
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_MS,
    application_name: options.applicationName ?? COORDINATOR_APPLICATION,
    types: { getTypeParser },
    Client: preparedClient(),
  });
  // Without this listener, Node would end the process when the server closes an idle connection.
  pool.on('error', (error) => options.onConnectionLost?.(error));
  // Without this listener, a connection that breaks while in use would also end the process. Its next statement reports the loss.
  pool.on('connect', (client) => void client.on('error', () => {}));
  return new PostgresDialect({
    pool,
    // A generic plan made while a table was small would scan the whole table after it has grown.
    onCreateConnection: async (connection) => {
      await connection.executeQuery(CompiledQuery.raw('set plan_cache_mode = force_custom_plan'));
    },
  });
}

function getTypeParser(type: number, format?: 'text' | 'binary'): (text: string) => unknown {
  // The `sum` of 64-bit integers is numeric on PostgreSQL, and integer on SQLite.
  if (format !== 'binary' && (type === builtins.INT8 || type === builtins.NUMERIC)) return exactInteger;
  return format === 'binary' ? pg.types.getTypeParser(type, 'binary') : pg.types.getTypeParser(type, 'text');
}

/** Parses a database number. Throws RangeError unless the value is an integer that a JavaScript number represents exactly. */
export function exactInteger(text: string): number {
  const value = Number(text);
  if (text === '' || !Number.isSafeInteger(value)) throw new RangeError('the database returned a number that is not an exact integer');
  return value;
}
