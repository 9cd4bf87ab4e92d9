/**
 * The embedded database: one file, a write-ahead log, foreign keys enforced. A commit is on the disk when its promise resolves,
 * because the file holds money; it is brought there beside this thread. Prepared statements are kept, as preparing costs more than
 * running most of them. While another process holds the write lock, writers wait without this thread, and reads go on.
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
import { errorReason, StartupError } from '../../config/startup-error.js';
import { WalFile } from './wal-file.js';

/** SQLite's own wait for locks, which blocks this thread. Only while the file is opened. */
const OPEN_TIMEOUT_MS = 5000;
/** Longest wait of a statement or a transaction for another process that holds the write lock, in milliseconds. */
const BUSY_MS = 5000;
/** Pauses between two tries to get the lock, in milliseconds; each is twice the one before. */
const FIRST_PAUSE_MS = 1;
const MAX_PAUSE_MS = 50;
const CACHE_KIB = 64 * 1024;
/** Pages of the log after which they are moved into the file: few enough that moving them takes milliseconds. */
const CHECKPOINT_PAGES = 4000;
/** Different statements are few; beyond this somebody builds them with values inside, and the oldest go. */
const MAX_KEPT_STATEMENTS = 1000;

/**
 * Kysely's dialect for a database file, which is created where there is none. A write fails with `SQLITE_BUSY` when another process
 * holds the write lock for longer than `busyMs`. Throws {@link StartupError}.
 */
export function sqliteDialect(file: string, busyMs = BUSY_MS): SqliteDialect {
  return new FileDialect(openFile(file), new WalFile(`${file}-wal`), busyMs);
}

class FileDialect extends SqliteDialect {
  readonly #sqlite: Sqlite.Database;
  readonly #adapter: FileAdapter;
  readonly #busyMs: number;

  constructor(sqlite: Sqlite.Database, wal: WalFile, busyMs: number) {
    super({ database: sqlite });
    this.#sqlite = sqlite;
    this.#adapter = new FileAdapter(wal);
    this.#busyMs = busyMs;
  }

  override createDriver(): Driver {
    return new FileDriver(this.#sqlite, this.#adapter, this.#busyMs);
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

/**
 * SQLite itself does not wait for the disk; this does, where it holds up nobody else's work. There is one connection. Whoever waits
 * for another process's lock gives it to others meanwhile, so that reads go on.
 */
class FileDriver extends SqliteDriver {
  readonly #sqlite: Sqlite.Database;
  readonly #adapter: FileAdapter;
  readonly #busyMs: number;
  readonly #statements: KeptStatements;
  /** Of the connection. */
  readonly #transactionLock = new Mutex();
  /** Of those who wait for another process: the first of them tries, in the order in which they came. */
  readonly #fileLock = new Mutex();
  #raw: DatabaseConnection | null = null;
  #connection: DatabaseConnection | null = null;

  constructor(sqlite: Sqlite.Database, adapter: FileAdapter, busyMs: number) {
    const statements = new KeptStatements(sqlite);
    super({ database: statements });
    this.#sqlite = sqlite;
    this.#adapter = adapter;
    this.#busyMs = busyMs;
    this.#statements = statements;
  }

  override async acquireConnection(): Promise<DatabaseConnection> {
    await this.#transactionLock.acquire();
    this.#connection ??= await this.#connect();
    return this.#connection;
  }

  override async releaseConnection(): Promise<void> {
    this.#transactionLock.release();
  }

  /** Takes the write lock when a transaction begins: one that first reads and then writes could not wait for another's end. */
  override async beginTransaction(): Promise<void> {
    await this.#patiently((raw) => raw.executeQuery(CompiledQuery.raw('begin immediate')));
    // Only now: while it waited, another transaction may have set this.
    this.#adapter.commitIsQuick = false;
  }

  /** The driver's own connection is taken once and kept: its turns are those of this class. */
  async #connect(): Promise<DatabaseConnection> {
    const raw = await super.acquireConnection();
    this.#raw = raw;
    return {
      executeQuery: async <R>(query: CompiledQuery): Promise<QueryResult<R>> => {
        // The lock is there. What is written within a transaction waits for its commit.
        if (this.#sqlite.inTransaction) return raw.executeQuery<R>(query);
        const reads = this.#statements.prepare(query.sql).readonly;
        const result = await this.#patiently(() => raw.executeQuery<R>(query), reads);
        if (!reads) await this.#adapter.wal.flush();
        return result;
      },
      streamQuery: <R>(query: CompiledQuery, chunkSize?: number) => raw.streamQuery<R>(query, chunkSize),
    };
  }

  /**
   * Runs a statement, again and again while another process holds the lock, for `busyMs` at most. The caller holds the
   * connection before and afterwards, and not in between.
   */
  async #patiently<R>(run: (raw: DatabaseConnection) => Promise<R>, reads = false): Promise<R> {
    const raw = this.#raw;
    if (raw === null) throw new Error('the connection was not acquired');
    // A read needs no lock, so it does not wait behind writers.
    if (reads || this.#fileLock.isFree) {
      try {
        return await run(raw);
      } catch (error) {
        if (!isBusy(error)) throw error;
      }
    }
    const deadline = performance.now() + this.#busyMs;
    this.#transactionLock.release();
    await this.#fileLock.acquire();
    try {
      for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, MAX_PAUSE_MS)) {
        await this.#transactionLock.acquire();
        try {
          return await run(raw);
        } catch (error) {
          if (!isBusy(error) || performance.now() + pause > deadline) throw error;
        }
        this.#transactionLock.release();
        await new Promise((resolve) => {
          setTimeout(resolve, pause);
        });
      }
    } finally {
      this.#fileLock.release();
    }
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

/** Whether a database file refused a statement because another process holds its lock. */
function isBusy(error: unknown): boolean {
  return error instanceof Sqlite.SqliteError && /^SQLITE_(BUSY|LOCKED)/.test(error.code);
}

class KeptStatements {
  readonly #sqlite: Sqlite.Database;
  readonly #statements = new Map<string, Sqlite.Statement>();

  constructor(sqlite: Sqlite.Database) {
    this.#sqlite = sqlite;
  }

  prepare(text: string): Sqlite.Statement {
    return this.#statements.get(text) ?? this.#prepareNew(text);
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
    if (this.#statements.size >= MAX_KEPT_STATEMENTS) {
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
    const sqlite = new Sqlite(file, { timeout: OPEN_TIMEOUT_MS });
    chmodSync(file, 0o600);
    sqlite.pragma('journal_mode = WAL');
    // The log's header and its move into the file wait for the disk; commits do not, see the driver.
    sqlite.pragma('synchronous = NORMAL');
    // On macOS an fsync alone leaves data in the drive's cache. Elsewhere this does nothing.
    sqlite.pragma('fullfsync = ON');
    sqlite.pragma('foreign_keys = ON');
    sqlite.pragma(`cache_size = -${CACHE_KIB}`);
    sqlite.pragma(`wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
    // From here on the driver waits, without this thread.
    sqlite.pragma('busy_timeout = 0');
    return sqlite;
  } catch (error) {
    throw new StartupError(`The database ${file} cannot be opened: ${errorReason(error)}.`, { cause: error });
  }
}

/** A lock for asynchronous work: one holder at a time, and the others in the order in which they came. */
export class Mutex {
  #held = false;
  readonly #waiting: (() => void)[] = [];

  get isFree(): boolean {
    return !this.#held;
  }

  /** Resolves when the caller has the turn. Every caller passes it on. */
  async acquire(): Promise<void> {
    if (!this.#held) {
      this.#held = true;
      return;
    }
    await new Promise<void>((resolve) => {
      this.#waiting.push(resolve);
    });
  }

  release(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#held = false;
    else next();
  }
}
