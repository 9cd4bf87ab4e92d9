/**
 * `FileHashes`: SHA-256 of model files. A cached hash holds while size, modification time and inode of the file are the same.
 *
 * The daemon and the owner's commands share the cache file. Each adds its entries to those in the file at that moment.
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
/** Default of `maxCheckMs`. Bounded, because `stat` may not return for a file on a network file system. */
const MAX_CHECK_MS = 1000;

export class FileHashes {
  readonly #file: string;
  readonly #isDeleted: (path: string) => Promise<boolean>;
  readonly #maxCheckMs: number;
  /** Key: path. Entries of the cache file when it was last read, and of this process. */
  #entryByPath = new Map<string, Entry>();
  /** Key: path of a deleted file. Its entry is not taken over from the cache file again. */
  readonly #deletedByPath = new Map<string, Entry>();
  /** Search for deleted files in progress. Only one, so that a `stat` that does not return occupies only one thread. */
  #search: Promise<void> | null = null;

  /**
   * @param file Path of the cache.
   * @param isDeleted Whether a file certainly no longer exists. Default: according to the file system.
   * @param maxCheckMs Maximum wait for the search for deleted files, in milliseconds.
   */
  constructor(file: string, isDeleted = isDeletedFile, maxCheckMs = MAX_CHECK_MS) {
    this.#file = file;
    this.#isDeleted = isDeleted;
    this.#maxCheckMs = maxCheckMs;
  }

  /**
   * Hexadecimal SHA-256 of a file, cached or computed.
   *
   * @throws {ModelFileError} The file changed while it was read. Also read errors, and an AbortError when the signal aborts.
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

  /** {@link modelHash} of a model's files. Throws as {@link hashFile}. */
  async hashModel(paths: readonly string[], signal?: AbortSignal): Promise<string> {
    const hashes: string[] = [];
    for (const path of paths) hashes.push(await this.hashFile(path, signal));
    return modelHash(hashes);
  }

  /** Cached hash of an unchanged file, or null. */
  async cachedHash(path: string): Promise<string | null> {
    const own = this.#entryByPath.get(path);
    if (own !== undefined && isSameStamp(own, await readStamp(path))) return own.sha256;
    this.#read();
    const entry = this.#entryByPath.get(path);
    if (entry === undefined) return null;
    return isSameStamp(entry, await readStamp(path)) ? entry.sha256 : null;
  }

  /** Caches a hash, and drops entries of deleted files. `stamp`: read before the hashing, so that a change since then is noticed. */
  async cacheHash(path: string, sha256: string, stamp: FileStamp): Promise<void> {
    this.#read();
    const entry = { ...stamp, sha256 };
    this.#entryByPath.set(path, entry);
    this.#search ??= this.#dropDeleted().finally(() => {
      this.#search = null;
    });
    await withTimeLimit(this.#search, this.#maxCheckMs);
    // Another process may have written during the wait. Between this reading and the writing, there is none.
    this.#read();
    this.#entryByPath.set(path, entry);
    try {
      writePrivateFile(this.#file, JSON.stringify({ version: 1, files: Object.fromEntries(this.#entryByPath) }));
    } catch {
      // The entry stays in memory.
    }
  }

  async #dropDeleted(): Promise<void> {
    for (const [path, entry] of [...this.#entryByPath]) {
      // The file may have been hashed again meanwhile.
      if ((await this.#isDeleted(path)) && this.#entryByPath.get(path) === entry) {
        this.#entryByPath.delete(path);
        this.#deletedByPath.set(path, entry);
      }
    }
  }

  /** Takes over the entries of the cache file, even in place of own ones: another process may have hashed a changed file. */
  #read(): void {
    let cache: unknown = null;
    try {
      cache = JSON.parse(readFileSync(this.#file, 'utf8'));
    } catch {
      // The cache is missing or unreadable.
    }
    if (!validator().Check(cache)) return;
    for (const [path, entry] of Object.entries(cache.files)) {
      const [own, deleted] = [this.#entryByPath.get(path), this.#deletedByPath.get(path)];
      const isKnown = [own, deleted].some((known) => known !== undefined && isSameStamp(known, entry));
      if (!isKnown) this.#entryByPath.set(path, entry);
    }
  }
}

/** Whether a file certainly no longer exists. False if it only cannot be read. */
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
 * Hash of a model: the hexadecimal hash of its single file, or SHA-256 of the hashes of all files, each followed by a newline.
 *
 * Computed from hashes, which model repositories publish, so that no download is necessary.
 */
export function modelHash(hashes: readonly string[]): string {
  const [only, ...others] = hashes;
  if (only !== undefined && others.length === 0) return only;
  return createHash('sha256')
    .update(hashes.map((hash) => `${hash}\n`).join(''))
    .digest('hex');
}

/** If one of these members has changed, the file's content may have changed. */
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
