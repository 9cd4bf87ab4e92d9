/**
 * `WalFile`: syncs SQLite's write-ahead log to disk, on Node's thread pool.
 *
 * SQLite recovers the log in order, so one sync makes all earlier commits durable.
 */
import { type FileHandle, open } from 'node:fs/promises';

export class WalFile {
  readonly #path: string;
  #handle: Promise<FileHandle> | null = null;
  #running: Promise<void> | null = null;
  #next: Promise<void> | null = null;

  /** `path`: the `-wal` file, which exists only after the first write to the database. */
  constructor(path: string) {
    this.#path = path;
  }

  /** Resolves when all commits before this call are on the disk. Rejects if the sync fails. */
  flush(): Promise<void> {
    if (this.#running === null) return this.#start();
    // The running sync may have begun before the caller's commit, so the caller waits for the next sync.
    this.#next ??= this.#running.then(
      () => this.#start(),
      () => this.#start(),
    );
    return this.#next;
  }

  async close(): Promise<void> {
    await Promise.allSettled([this.#running, this.#next]);
    const handle = await this.#handle?.catch(() => null);
    this.#handle = null;
    await handle?.close();
  }

  #start(): Promise<void> {
    this.#next = null;
    const run = this.#synchronise().finally(() => {
      if (this.#running === run) this.#running = null;
    });
    this.#running = run;
    return run;
  }

  async #synchronise(): Promise<void> {
    this.#handle ??= open(this.#path, 'r').catch((error: unknown) => {
      this.#handle = null;
      throw error;
    });
    // On macOS this flushes the drive's cache, as SQLite's `fullfsync` does.
    await (await this.#handle).datasync();
  }
}
