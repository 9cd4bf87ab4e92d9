/**
 * `FileHashes`: SHA-256 of model files, cached by size, modification time and inode. Without a usable cache, files are hashed again.
 *
 * The daemon and the owner's commands share the cache file. Each adds its entries to those that the file has at that moment.
 */
import { createHash } from 'node:crypto';
import { createReadStream, readFileSync, type Stats, statSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { lazyValidator, withTimeLimit } from '@inference/protocol';
import Type, { type Static } from 'typebox';
import { writePrivateFile } from '../files/private-file.js';
import { ModelFileError } from './gguf-header.js';

const EntrySchema = Type.Object({
  size: Type.Number(),
  mtime_ms: Type.Number(),
  inode: Type.String(),
  sha256: Type.String({ pattern: '^[0-9a-f]{64}$' }),
});
const CacheSchema = Type.Object({ version: Type.Literal(1), files: Type.Record(Type.String(), EntrySchema) });
type Entry = Static<typeof EntrySchema>;

const validator = lazyValidator(CacheSchema);
const READ_BYTES = 1 << 20;
/** Maximum wait for the check for deleted files: `stat` may not return for a file on a network file system. */
const MAX_CHECK_MS = 1000;

export class FileHashes {
  readonly #file: string;
  readonly #isDeleted: (path: string) => Promise<boolean>;
  /** Entries of the file when it was last read, and own ones, also if the file cannot be written. */
  #entries = new Map<string, Entry>();
  /** Entries of deleted files. They are not read again from the cache. */
  readonly #deleted = new Map<string, Entry>();
  /** Check in progress for deleted files. A single one, so that a `stat` that does not return occupies only one thread. */
  #check: Promise<void> | null = null;

  /**
   * @param file Path of the cache.
   * @param isDeleted Whether a file certainly no longer exists. Default: according to the file system.
   */
  constructor(file: string, isDeleted = isDeletedFile) {
    this.#file = file;
    this.#isDeleted = isDeleted;
  }

  /**
   * Hexadecimal SHA-256 of a file. Throws read errors, and an AbortError when the signal aborts.
   *
   * @throws {ModelFileError} The file changed while it was read.
   */
  async hashFile(path: string, signal?: AbortSignal): Promise<string> {
    const known = await this.cachedHash(path);
    if (known !== null) return known;
    const before = await readStamp(path);
    const hash = createHash('sha256');
    for await (const chunk of createReadStream(path, { highWaterMark: READ_BYTES, ...(signal === undefined ? {} : { signal }) })) {
      hash.update(chunk as Buffer);
    }
    const sha256 = hash.digest('hex');
    if (!isSameStamp(before, await readStamp(path))) throw new ModelFileError(`the file ${path} changed while it was read`);
    await this.cacheHash(path, sha256, before);
    return sha256;
  }

  /** Hash of a model's files, see {@link modelHash}. Throws as {@link hashFile}. */
  async hashModel(paths: readonly string[], signal?: AbortSignal): Promise<string> {
    const hashes: string[] = [];
    for (const path of paths) hashes.push(await this.hashFile(path, signal));
    return modelHash(hashes);
  }

  /** Cached hash of an unchanged file, or null. */
  async cachedHash(path: string): Promise<string | null> {
    const own = this.#entries.get(path);
    if (own !== undefined && isSameStamp(own, await readStamp(path))) return own.sha256;
    this.#read();
    const entry = this.#entries.get(path);
    if (entry === undefined) return null;
    return isSameStamp(entry, await readStamp(path)) ? entry.sha256 : null;
  }

  /** Caches a hash. `stamp`: read before the file was hashed, so that a later change does not match. Drops entries of deleted files. */
  async cacheHash(path: string, sha256: string, stamp: FileStamp): Promise<void> {
    this.#read();
    const entry = { ...stamp, sha256 };
    this.#entries.set(path, entry);
    this.#check ??= this.#dropDeleted().finally(() => {
      this.#check = null;
    });
    await withTimeLimit(this.#check, MAX_CHECK_MS);
    // Another process may have written meanwhile. No wait separates this reading from the writing.
    this.#read();
    this.#entries.set(path, entry);
    try {
      writePrivateFile(this.#file, JSON.stringify({ version: 1, files: Object.fromEntries(this.#entries) }));
    } catch {
      // The next start computes the hash again.
    }
  }

  async #dropDeleted(): Promise<void> {
    for (const [path, entry] of [...this.#entries]) {
      // The file may have been hashed again meanwhile.
      if ((await this.#isDeleted(path)) && this.#entries.get(path) === entry) {
        this.#entries.delete(path);
        this.#deleted.set(path, entry);
      }
    }
  }

  /** Takes over the entries of the file, which precede own ones: another process may have hashed a changed file. */
  #read(): void {
    let cache: unknown = null;
    try {
      cache = JSON.parse(readFileSync(this.#file, 'utf8'));
    } catch {
      // The cache is missing or unreadable.
    }
    if (!validator().Check(cache)) return;
    for (const [path, entry] of Object.entries(cache.files)) {
      const [own, deleted] = [this.#entries.get(path), this.#deleted.get(path)];
      const isKnown = [own, deleted].some((known) => known !== undefined && isSameStamp(known, entry));
      if (!isKnown) this.#entries.set(path, entry);
    }
  }
}

/** Whether a file certainly no longer exists. False for one that cannot be read at present. */
async function isDeletedFile(path: string): Promise<boolean> {
  try {
    await stat(path);
    return false;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === 'ENOENT' || code === 'ENOTDIR';
  }
}

/**
 * Hash of a model, from the hexadecimal hashes of its files: that of a single file, otherwise SHA-256 of all, each followed by a
 * newline. Model repositories publish the hashes, so that no download is necessary.
 */
export function modelHash(hashes: readonly string[]): string {
  const [only, ...others] = hashes;
  if (only !== undefined && others.length === 0) return only;
  return createHash('sha256')
    .update(hashes.map((hash) => `${hash}\n`).join(''))
    .digest('hex');
}

/** Identity of a file's content: another size, modification time or inode means another content. */
export type FileStamp = Omit<Entry, 'sha256'>;

export async function readStamp(path: string): Promise<FileStamp> {
  return stampOf(await stat(path));
}

/** Stamps of several files as one text, for comparisons. Null: a file cannot be read. */
export function readStampsSync(paths: readonly string[]): string | null {
  try {
    return JSON.stringify(paths.map((path) => stampOf(statSync(path))));
  } catch {
    return null;
  }
}

function stampOf({ size, mtimeMs, ino }: Stats): FileStamp {
  return { size, mtime_ms: mtimeMs, inode: String(ino) };
}

function isSameStamp(a: FileStamp, b: FileStamp): boolean {
  return a.size === b.size && a.mtime_ms === b.mtime_ms && a.inode === b.inode;
}
