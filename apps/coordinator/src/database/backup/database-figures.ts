/** `databaseFigures`: counts and sums of a database. A backup stores them, and a restore compares them with the restored database. */
import { type LedgerFigures, ledgerFigures } from '../ledger/check-ledger.js';
import { readSchemaState } from '../migrations/schema-state.js';
import type { Database } from '../tables.js';

export interface LogHead {
  readonly origin: string;
  /** Number of leaves, published or not. */
  readonly size: number;
  readonly publishedSize: number;
  /** Hexadecimal. */
  readonly publishedRoot: string;
  /** Signature lines of witnesses for the published tree. */
  readonly cosignatures: string;
}

export interface DatabaseFigures {
  /** Names of the applied migrations, in order. */
  readonly migrations: readonly string[];
  /** Null: the schema is not that of this program, so the queries would fail. */
  readonly ledger: LedgerFigures | null;
  /** Null in the same case, or without a log. */
  readonly logHead: LogHead | null;
}

/** `view`: a connection, or a transaction whose snapshot is read. Rejects for the database of another application. */
export async function databaseFigures(view: Database): Promise<DatabaseFigures> {
  const { applied: migrations, pending, unknown } = await readSchemaState(view);
  if (migrations.length === 0) throw new Error('the database has no migrations');
  if (unknown.length > 0 || pending.length > 0) return { migrations, ledger: null, logHead: null };
  return { migrations, ledger: await ledgerFigures(view), logHead: await logHead(view) };
}

async function logHead(view: Database): Promise<LogHead | null> {
  const head = await view.selectFrom('log_heads').selectAll().executeTakeFirst();
  if (head === undefined) return null;
  const { origin, size, published_size: publishedSize, published_root: publishedRoot, cosignatures } = head;
  return { origin, size, publishedSize, publishedRoot, cosignatures };
}
