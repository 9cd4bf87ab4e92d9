/**
 * `sqliteDialect`: Kysely dialect for a SQLite file with a write-ahead log (WAL).
 *
 * A commit resolves after the WAL was synced to disk, except after `deferSync`. The sync runs on Node's thread pool, so that
 * this thread is not blocked.
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

/** Maximum wait for another process's lock while the file is opened. SQLite itself waits, and blocks this thread. */
const OPEN_TIMEOUT_MS = 5000;
/** Default maximum wait of a statement or transaction for another process's write lock. */
const BUSY_MS = 5000;
/** Pauses between attempts to get the lock. They double up to the maximum. */
const FIRST_PAUSE_MS = 1;
const MAX_PAUSE_MS = 50;
const CACHE_KIB = 64 * 1024;
/** Pages in the WAL that cause a checkpoint (their copy into the file). Few enough that a checkpoint takes milliseconds. */
const CHECKPOINT_PAGES = 4000;
/** Maximum cached statements. A guard: only SQL texts that contain values could become so many. */
const MAX_CACHED_STATEMENTS = 1000;

/** Opens or creates the file. Throws {@link StartupError}. Writes fail with `SQLITE_BUSY` if they cannot get the lock in `busyMs`. */
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

/** Adapter of this dialect, by which deferred-sync.ts recognises SQLite and reaches the WAL. */
export class FileAdapter extends SqliteAdapter {
  readonly wal: WalFile;
  /** Whether the commit of the running transaction skips the sync. */
  isSyncDeferred = false;

  constructor(wal: WalFile) {
    super();
    this.wal = wal;
  }

  /** SQLite can roll back schema changes, so all pending migrations run in one transaction, as on PostgreSQL. */
  override get supportsTransactionalDdl(): boolean {
    return true;
  }
}

/** Driver with one connection, used by one caller at a time. A caller that waits for another process's lock lends it to the others. */
class FileDriver extends SqliteDriver {
  readonly #sqlite: Sqlite.Database;
  readonly #adapter: FileAdapter;
  readonly #busyMs: number;
  readonly #statements: StatementCache;
  /** Serialises the use of the connection. */
  readonly #connectionLock = new Mutex();
  /** Held by the caller that retries while another process has the file's write lock. Further callers wait. */
  readonly #fileLock = new Mutex();
  /** Connection of the base class, which `#connection` wraps. */
  #raw: DatabaseConnection | null = null;
  #connection: DatabaseConnection | null = null;

  constructor(sqlite: Sqlite.Database, adapter: FileAdapter, busyMs: number) {
    const statements = new StatementCache(sqlite);
    super({ database: statements });
    this.#sqlite = sqlite;
    this.#adapter = adapter;
    this.#busyMs = busyMs;
    this.#statements = statements;
  }

  override async acquireConnection(): Promise<DatabaseConnection> {
    await this.#connectionLock.acquire();
    this.#connection ??= await this.#connect();
    return this.#connection;
  }

  override async releaseConnection(): Promise<void> {
    this.#connectionLock.release();
  }

  /** Takes the write lock at the start. A transaction that has already read could not wait for the lock (SQLITE_BUSY_SNAPSHOT). */
  override async beginTransaction(): Promise<void> {
    await this.#retryWhileBusy((raw) => raw.executeQuery(CompiledQuery.raw('begin immediate')));
    // Reset after the wait, because another transaction may have set the flag meanwhile.
    this.#adapter.isSyncDeferred = false;
  }

  /** Acquires the base driver's only connection. `#connectionLock` serialises its use. */
  async #connect(): Promise<DatabaseConnection> {
    const raw = await super.acquireConnection();
    this.#raw = raw;
    return {
      executeQuery: async <R>(query: CompiledQuery): Promise<QueryResult<R>> => {
        // A transaction already holds the write lock, and is synced at its commit.
        if (this.#sqlite.inTransaction) return raw.executeQuery<R>(query);
        const reads = this.#statements.prepare(query.sql).readonly;
        const result = await this.#retryWhileBusy(() => raw.executeQuery<R>(query), reads);
        if (!reads) await this.#adapter.wal.flush();
        return result;
      },
      streamQuery: <R>(query: CompiledQuery, chunkSize?: number) => raw.streamQuery<R>(query, chunkSize),
    };
  }

  /** Runs a statement. While another process holds the lock, retries for at most `busyMs`, and releases the connection in pauses. */
  async #retryWhileBusy<R>(run: (raw: DatabaseConnection) => Promise<R>, reads = false): Promise<R> {
    const raw = this.#raw;
    if (raw === null) throw new Error('the connection was not acquired');
    // In WAL mode, reads need no lock, so they never queue behind writers.
    if (reads || this.#fileLock.isFree) {
      try {
        return await run(raw);
      } catch (error) {
        if (!isBusy(error)) throw error;
      }
    }
    const deadline = performance.now() + this.#busyMs;
    this.#connectionLock.release();
    await this.#fileLock.acquire();
    try {
      for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, MAX_PAUSE_MS)) {
        await this.#connectionLock.acquire();
        try {
          return await run(raw);
        } catch (error) {
          if (!isBusy(error) || performance.now() + pause > deadline) throw error;
        }
        this.#connectionLock.release();
        await new Promise((resolve) => setTimeout(resolve, pause));
      }
    } finally {
      this.#fileLock.release();
    }
  }

  override async commitTransaction(connection: DatabaseConnection): Promise<void> {
    await super.commitTransaction(connection);
    if (!this.#adapter.isSyncDeferred) await this.#adapter.wal.flush();
  }

  override async destroy(): Promise<void> {
    await this.#adapter.wal.close();
    await super.destroy();
  }
}

/** Whether SQLite refused a statement because another process holds the lock. */
function isBusy(error: unknown): boolean {
  return error instanceof Sqlite.SqliteError && /^SQLITE_(BUSY|LOCKED)/.test(error.code);
}

/** Prepares each SQL text once. Stands in for the database in Kysely's driver. */
class StatementCache {
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
    // After a schema change, cached statements are dropped. A cached `select *` would lack the new column.
    if (/^\s*(create|alter|drop)\b/i.test(text)) {
      this.#statements.clear();
      return statement;
    }
    if (this.#statements.size >= MAX_CACHED_STATEMENTS) {
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
    // SQLite itself syncs only checkpoints and the WAL's header. The driver syncs commits.
    sqlite.pragma('synchronous = NORMAL');
    // On macOS a plain fsync leaves data in the drive's cache. No effect elsewhere.
    sqlite.pragma('fullfsync = ON');
    sqlite.pragma('foreign_keys = ON');
    // Overwrites deleted content with zeros, so that erased personal data do not remain in the file.
    sqlite.pragma('secure_delete = ON');
    sqlite.pragma(`cache_size = -${CACHE_KIB}`);
    sqlite.pragma(`wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
    // From now on, the driver waits for locks itself, without blocking this thread.
    sqlite.pragma('busy_timeout = 0');
    return sqlite;
  } catch (error) {
    throw new StartupError(`The database ${file} cannot be opened: ${errorReason(error)}.`, { cause: error });
  }
}

/** Asynchronous lock: one holder at a time, first come, first served. */
class Mutex {
  #isHeld = false;
  readonly #waiting: (() => void)[] = [];

  get isFree(): boolean {
    return !this.#isHeld;
  }

  /** Resolves when the caller holds the lock, which the caller must release. */
  async acquire(): Promise<void> {
    if (!this.#isHeld) {
      this.#isHeld = true;
      return;
    }
    await new Promise<void>((resolve) => {
      this.#waiting.push(resolve);
    });
  }

  release(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#isHeld = false;
    else next();
  }
}
