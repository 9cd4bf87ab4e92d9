/** `FileHashes`: SHA-256 of model files, cached by size, modification time and inode. Without a usable cache, files are hashed again. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { lazyValidator } from '@inference/protocol';
import Type, { type Static } from 'typebox';
import { writePrivateFile } from '../files/private-file.js';

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

export class FileHashes {
  readonly #file: string;
  #entries: Map<string, Entry> | null = null;

  /** @param file Path of the cache. */
  constructor(file: string) {
    this.#file = file;
  }

  /** Hexadecimal SHA-256 of a file. Throws read errors, and an AbortError when the signal aborts. */
  async hashFile(path: string, signal?: AbortSignal): Promise<string> {
    const known = await this.cachedHash(path);
    if (known !== null) return known;
    const before = await readStamp(path);
    const hash = createHash('sha256');
    for await (const chunk of createReadStream(path, { highWaterMark: READ_BYTES, ...(signal === undefined ? {} : { signal }) })) {
      hash.update(chunk as Buffer);
    }
    const sha256 = hash.digest('hex');
    // A file that changed during the hashing is not cached.
    if (isSameStamp(before, await readStamp(path))) await this.cacheHash(path, sha256);
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
    const entry = (await this.#read()).get(path);
    if (entry === undefined) return null;
    return isSameStamp(entry, await readStamp(path)) ? entry.sha256 : null;
  }

  /** Caches a hash computed during a download. */
  async cacheHash(path: string, sha256: string): Promise<void> {
    const entries = await this.#read();
    entries.set(path, { ...(await readStamp(path)), sha256 });
    try {
      writePrivateFile(this.#file, JSON.stringify({ version: 1, files: Object.fromEntries(entries) }));
    } catch {
      // The next start computes the hash again.
    }
  }

  async #read(): Promise<Map<string, Entry>> {
    if (this.#entries !== null) return this.#entries;
    let cache: unknown = null;
    try {
      cache = JSON.parse(await readFile(this.#file, 'utf8'));
    } catch {
      // The cache is missing or unreadable.
    }
    this.#entries ??= new Map(validator().Check(cache) ? Object.entries(cache.files) : []);
    return this.#entries;
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

type Stamp = Omit<Entry, 'sha256'>;

async function readStamp(path: string): Promise<Stamp> {
  const { size, mtimeMs, ino } = await stat(path, { bigint: false });
  return { size, mtime_ms: mtimeMs, inode: String(ino) };
}

function isSameStamp(a: Stamp, b: Stamp): boolean {
  return a.size === b.size && a.mtime_ms === b.mtime_ms && a.inode === b.inode;
}
