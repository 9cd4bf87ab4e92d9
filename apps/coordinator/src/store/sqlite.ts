/**
 * The embedded database: one file, a write-ahead log, foreign keys enforced. A commit is on the disk when its promise resolves,
 * because the file holds money; it is brought there beside this thread. Prepared statements are kept, as preparing costs more than
 * running most of them.
 */
import { chmodSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import Sqlite from 'better-sqlite3';
import {
  CompiledQuery,
  type DatabaseConnection,
  type DialectAdapter,
  type Driver,
  type QueryResult,
  SqliteAdapter,
  SqliteDialect,
  SqliteDriver,
} from 'kysely';
import { reasonOf, StartError } from '../start-error.js';
import { WalFile } from './wal-file.js';

const BUSY_TIMEOUT_MS = 5000;
const CACHE_KIB = 64 * 1024;
/** Pages of the log after which they are moved into the file: few enough that moving them takes milliseconds. */
const CHECKPOINT_PAGES = 4000;
/** Different statements are few; beyond this somebody builds them with values inside, and the oldest go. */
const MOST_KEPT_STATEMENTS = 1000;

/** Kysely's dialect for a database file, which is created where there is none. Throws {@link StartError}. */
export function sqliteDialect(file: string): SqliteDialect {
  return new FileDialect(openFile(file), new WalFile(`${file}-wal`));
}

class FileDialect extends SqliteDialect {
  readonly #sqlite: Sqlite.Database;
  readonly #adapter: FileAdapter;

  constructor(sqlite: Sqlite.Database, wal: WalFile) {
    super({ database: sqlite });
    this.#sqlite = sqlite;
    this.#adapter = new FileAdapter(wal);
  }

  override createDriver(): Driver {
    return new FileDriver(this.#sqlite, this.#adapter);
  }

  override createAdapter(): DialectAdapter {
    return this.#adapter;
  }
}

/** Also what says of an open database that it is a file, and where its log is. */
export class FileAdapter extends SqliteAdapter {
  readonly wal: WalFile;
  /** The running transaction's commit does not wait for the disk. Set within it, so by whoever has the one connection. */
  commitIsQuick = false;

  constructor(wal: WalFile) {
    super();
    this.wal = wal;
  }

  /** SQLite can undo a change of schema, so all pending migrations are one transaction, as on PostgreSQL. */
  override get supportsTransactionalDdl(): boolean {
    return true;
  }
}

/** SQLite itself does not wait for the disk; this does, where it holds up nobody else's work. */
class FileDriver extends SqliteDriver {
  readonly #sqlite: Sqlite.Database;
  readonly #adapter: FileAdapter;
  readonly #statements: KeptStatements;
  /** There is one, which takes turns. */
  #connection: DatabaseConnection | null = null;

  constructor(sqlite: Sqlite.Database, adapter: FileAdapter) {
    const statements = new KeptStatements(sqlite);
    super({ database: statements });
    this.#sqlite = sqlite;
    this.#adapter = adapter;
    this.#statements = statements;
  }

  override async acquireConnection(): Promise<DatabaseConnection> {
    const connection = await super.acquireConnection();
    this.#connection ??= {
      executeQuery: async <R>(query: CompiledQuery): Promise<QueryResult<R>> => {
        const result = connection.executeQuery<R>(query);
        // It has run by now. What is written within a transaction waits for its commit.
        if (this.#statements.latestReads || this.#sqlite.inTransaction) return result;
        const written = await result;
        await this.#adapter.wal.flush();
        return written;
      },
      streamQuery: <R>(query: CompiledQuery, chunkSize?: number) => connection.streamQuery<R>(query, chunkSize),
    };
    return this.#connection;
  }

  /** Takes the write lock when a transaction begins: one that first reads and then writes could not wait for another's end. */
  override async beginTransaction(connection: DatabaseConnection): Promise<void> {
    this.#adapter.commitIsQuick = false;
    await connection.executeQuery(CompiledQuery.raw('begin immediate'));
  }

  override async commitTransaction(connection: DatabaseConnection): Promise<void> {
    await super.commitTransaction(connection);
    if (!this.#adapter.commitIsQuick) await this.#adapter.wal.flush();
  }

  override async destroy(): Promise<void> {
    await this.#adapter.wal.close();
    await super.destroy();
  }
}

class KeptStatements {
  readonly #sqlite: Sqlite.Database;
  readonly #statements = new Map<string, Sqlite.Statement>();
  /** The statement that was asked for last changes nothing. */
  latestReads = true;

  constructor(sqlite: Sqlite.Database) {
    this.#sqlite = sqlite;
  }

  prepare(text: string): Sqlite.Statement {
    const statement = this.#statements.get(text) ?? this.#prepareNew(text);
    this.latestReads = statement.readonly;
    return statement;
  }

  close(): void {
    this.#statements.clear();
    this.#sqlite.close();
  }

  #prepareNew(text: string): Sqlite.Statement {
    const statement = this.#sqlite.prepare(text);
    // A kept `select *` would miss a column that a migration adds.
    if (/^\s*(create|alter|drop)\b/i.test(text)) {
      this.#statements.clear();
      return statement;
    }
    if (this.#statements.size >= MOST_KEPT_STATEMENTS) {
      const [oldest] = this.#statements.keys();
      if (oldest !== undefined) this.#statements.delete(oldest);
    }
    this.#statements.set(text, statement);
    return statement;
  }
}

function openFile(file: string): Sqlite.Database {
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    const sqlite = new Sqlite(file, { timeout: BUSY_TIMEOUT_MS });
    chmodSync(file, 0o600);
    sqlite.pragma('journal_mode = WAL');
    // The log's header and its move into the file wait for the disk; commits do not, see the driver.
    sqlite.pragma('synchronous = NORMAL');
    // On macOS an fsync alone leaves data in the drive's cache. Elsewhere this does nothing.
    sqlite.pragma('fullfsync = ON');
    sqlite.pragma('foreign_keys = ON');
    sqlite.pragma(`cache_size = -${CACHE_KIB}`);
    sqlite.pragma(`wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
    return sqlite;
  } catch (error) {
    throw new StartError(`The database ${file} cannot be opened: ${reasonOf(error)}.`, { cause: error });
  }
}
