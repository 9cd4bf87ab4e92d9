/**
 * The write-ahead log of the database file, brought to the disk beside this thread. A commit of SQLite's that waits for the disk
 * holds up everything meanwhile; one that does not is durable once the log has been synchronised, for it is read back in order.
 */
import { type FileHandle, open } from 'node:fs/promises';

export class WalFile {
  readonly #path: string;
  #handle: Promise<FileHandle> | null = null;
  #running: Promise<void> | null = null;
  #next: Promise<void> | null = null;

  /** `path` of the log, which exists once the database was written to. */
  constructor(path: string) {
    this.#path = path;
  }

  /** Resolves when all that was committed before this call is on the disk. Rejects when the system cannot say so. */
  flush(): Promise<void> {
    if (this.#running === null) return this.#start();
    // What runs may have begun before the newest commit; the next one serves all who ask until it begins.
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
    // On macOS this asks the drive to empty its cache, as SQLite's `fullfsync` does.
    await (await this.#handle).datasync();
  }
}
