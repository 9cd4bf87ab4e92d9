/**
 * `WalFile`: syncs SQLite's write-ahead log to disk, on Node's thread pool.
 *
 * Commits are appended to the log in order, so one sync makes all earlier commits durable.
 */
import { type FileHandle, open } from 'node:fs/promises';
import { CoalescingRunner } from '../../coalescing-runner.js';

export class WalFile {
  readonly #path: string;
  #handle: Promise<FileHandle> | null = null;
  /** Each caller waits for a sync that starts after the call, because a running one may have begun before the caller's commit. */
  readonly #syncs = new CoalescingRunner(() => this.#synchronise());

  /** `path`: the `-wal` file, which exists only after the first write to the database. */
  constructor(path: string) {
    this.#path = path;
  }

  /** Resolves when all commits before this call are on the disk. Rejects if the sync fails. */
  flush(): Promise<void> {
    return this.#syncs.run();
  }

  async close(): Promise<void> {
    await this.#syncs.whenIdle();
    const handle = await this.#handle?.catch(() => null);
    this.#handle = null;
    await handle?.close();
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
