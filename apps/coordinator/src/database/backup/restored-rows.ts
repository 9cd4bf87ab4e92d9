/**
 * `restoredRowStatements`: SQL that a restore runs on the restored tables.
 *
 * Secrets are filled in, old sign-ins may be ended, and the numbers (epochs) of published keysets (sealing keys of providers) skip ahead.
 */
import { createHash } from 'node:crypto';
import { type RawBuilder, sql } from 'kysely';
import { LOG_NAME } from '../log-repository.js';

/** Row of the table `secrets`: the name, and 32 bytes in hexadecimal. */
export interface SecretRow {
  readonly name: string;
  readonly value: string;
}

export interface RestoredRows {
  /** Empty: coordinators create new secrets when they start. */
  readonly secrets: readonly SecretRow[];
  /** Whether to delete sessions, pending sign-ins and device codes, because some may have been ended since the backup. */
  readonly endSessions: boolean;
  /** Origin of a new, empty transparency log. Null: the log of the backup continues. */
  readonly newLogOrigin: string | null;
}

/** Credentials that people renew by signing in. */
const SESSION_TABLES = ['auth_sessions', 'auth_verifications', 'device_codes'];
const LOG_TABLES = ['log_entries', 'log_nodes', 'log_heads'];
/**
 * Keyset epochs that a restore skips, because clients refuse two different keysets of one epoch.
 *
 * Far more than a network publishes between a backup and its restore.
 */
const SKIPPED_EPOCHS = 1_000_000;

/** A statement without parameters, so that it can be part of a script. */
export interface RowStatement {
  /** Table that a backup of an older schema may lack. */
  readonly table: string;
  readonly statement: RawBuilder<unknown>;
}

/** Statements in the order of execution. `schema`: schema of the tables, for PostgreSQL scripts without search path; null: SQLite. */
export function restoredRowStatements(rows: RestoredRows, schema: string | null): RowStatement[] {
  const table = (name: string) => (schema === null ? sql.table(name) : sql.id(schema, name));
  const emptied = [...(rows.endSessions ? SESSION_TABLES : []), ...(rows.newLogOrigin === null ? [] : LOG_TABLES)];
  return [
    ...rows.secrets.map(({ name, value }) => ({
      table: 'secrets',
      statement: sql`insert into ${table('secrets')} (name, value) values (${sql.lit(name)}, ${sql.lit(value)})`,
    })),
    ...emptied.map((name) => ({ table: name, statement: sql`delete from ${table(name)}` })),
    ...laterEpochs(table),
    ...(rows.newLogOrigin === null ? [] : [{ table: 'log_heads', statement: emptyHead(table('log_heads'), rows.newLogOrigin) }]),
  ];
}

/** Raises the epoch of the newest keyset and expires the keyset. The next start then publishes one of a later epoch. */
function laterEpochs(table: (name: string) => RawBuilder<unknown>): RowStatement[] {
  const keysets = table('e2e_keysets');
  return [
    { table: 'e2e_keyset_claims', statement: sql`delete from ${table('e2e_keyset_claims')}` },
    { table: 'e2e_keysets', statement: sql`delete from ${keysets} where epoch < (select max(epoch) from ${keysets})` },
    { table: 'e2e_keysets', statement: sql`update ${keysets} set epoch = epoch + ${sql.lit(SKIPPED_EPOCHS)}, issued_at = 0` },
  ];
}

function emptyHead(heads: RawBuilder<unknown>, origin: string): RawBuilder<unknown> {
  const root = createHash('sha256').digest('hex');
  return sql`insert into ${heads} (name, origin, size, published_size, published_root, cosignatures)
    values (${sql.lit(LOG_NAME)}, ${sql.lit(origin)}, 0, 0, ${sql.lit(root)}, '')`;
}
