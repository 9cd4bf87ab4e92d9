/**
 * `ApiKeyCache`: authenticates requests by API key. Keys that are not revoked are cached for seconds, whatever their limits.
 *
 * A key changed here leaves this cache at once. Other coordinators are notified.
 */
import { BoundedMap } from '@inference/scheduler/bounded-map';
import type { Database } from '../tables.js';
import { type ApiKey, findKey, hashKey, looksLikeKey, recordKeyUse, revokeKey } from './api-key-repository.js';

interface ApiKeyCacheOptions {
  readonly database: Database;
  /** Time for which a key stays cached. Default 3000. */
  readonly cacheMs?: number;
  /** Interval at which times of last use are written. Default 15,000. */
  readonly writeEveryMs?: number;
  readonly now?: () => number;
  readonly onWriteError: (error: unknown) => void;
  /** Called with the id of each changed key or account, for other coordinators. */
  readonly onChange?: (id: string) => void;
}

const MAX_CACHED = 10_000;
/** Maximum remembered hashes of keys that were found once. They are exempt from the limit of `authenticateLimited`. */
const MAX_VALID_HASHES = 20_000;

export class ApiKeyCache {
  readonly #database: Database;
  readonly #cacheMs: number;
  readonly #now: () => number;
  readonly #onWriteError: (error: unknown) => void;
  readonly #onChange: (id: string) => void;
  readonly #cachedByHash = new Map<string, { readonly key: ApiKey; readonly until: number }>();
  readonly #validHashes = new BoundedMap<string, true>(MAX_VALID_HASHES);
  /** Client networks whose query in `authenticateLimited` is running. */
  readonly #limitedLookUps = new Set<string>();
  /** Times of last use that are not written yet. Key: key id. */
  readonly #uses = new Map<string, number>();
  readonly #writer: NodeJS.Timeout;
  #writing: Promise<void> = Promise.resolve();
  /** Number of key changes so far. A query that began before a change must not cache its result. */
  #changes = 0;

  constructor(options: ApiKeyCacheOptions) {
    this.#database = options.database;
    this.#cacheMs = options.cacheMs ?? 3000;
    this.#now = options.now ?? Date.now;
    this.#onWriteError = options.onWriteError;
    this.#onChange = options.onChange ?? (() => {});
    this.#writer = setInterval(() => void this.#writeUses(), options.writeEveryMs ?? 15_000);
    this.#writer.unref();
  }

  /**
   * Finds a key by its text. Null: unknown or revoked, or its account is closed. The caller checks expiry and suspension.
   *
   * A cached key is returned without a promise.
   */
  authenticate(text: string): ApiKey | null | Promise<ApiKey | null> {
    if (!looksLikeKey(text)) return null;
    const hash = hashKey(text);
    return this.#findCached(hash) ?? this.#queryDatabase(hash);
  }

  /** As {@link authenticate}, for a client network that sent many wrong keys: also null while another query of the network runs. */
  async authenticateLimited(text: string, network: string): Promise<ApiKey | null> {
    if (!looksLikeKey(text)) return null;
    const hash = hashKey(text);
    const known = this.#findCached(hash);
    if (known !== null) return known;
    if (this.#validHashes.has(hash)) return this.#queryDatabase(hash);
    if (this.#limitedLookUps.has(network)) return null;
    this.#limitedLookUps.add(network);
    try {
      return await this.#queryDatabase(hash);
    } finally {
      this.#limitedLookUps.delete(network);
    }
  }

  /** Revokes a key. Requests to this coordinator that begin after the returned promise resolves are rejected. */
  async revoke(id: string): Promise<boolean> {
    const revoked = await revokeKey(this.#database, id, this.#now());
    this.changed(id);
    return revoked;
  }

  /** Drops a changed key, or the keys of a changed account, from the caches of all coordinators. */
  changed(id: string): void {
    this.changedElsewhere(new Set([id]));
    this.#onChange(id);
  }

  /** Drops keys, and keys of accounts, that another coordinator has changed. */
  changedElsewhere(ids: ReadonlySet<string>): void {
    this.#changes++;
    for (const [hash, { key }] of this.#cachedByHash) if (ids.has(key.id) || ids.has(key.accountId)) this.#cachedByHash.delete(hash);
  }

  async close(): Promise<void> {
    clearInterval(this.#writer);
    await this.#writeUses();
  }

  #findCached(hash: string): ApiKey | null {
    const now = this.#now();
    const known = this.#cachedByHash.get(hash);
    if (known === undefined || known.until <= now) return null;
    this.#uses.set(known.key.id, now);
    return known.key;
  }

  async #queryDatabase(hash: string): Promise<ApiKey | null> {
    const changes = this.#changes;
    const found = await findKey(this.#database, hash);
    if (found === null || found.revokedAt !== null) {
      this.#cachedByHash.delete(hash);
      this.#validHashes.delete(hash);
      return null;
    }
    const now = this.#now();
    const { revokedAt: _, ...key } = found;
    this.#validHashes.set(hash, true);
    if (changes === this.#changes) this.#cache(hash, key, now + this.#cacheMs);
    this.#uses.set(key.id, now);
    return key;
  }

  #cache(hash: string, key: ApiKey, until: number): void {
    this.#cachedByHash.delete(hash);
    if (this.#cachedByHash.size >= MAX_CACHED) {
      const [oldest] = this.#cachedByHash.keys();
      if (oldest !== undefined) this.#cachedByHash.delete(oldest);
    }
    this.#cachedByHash.set(hash, { key, until });
  }

  /** Writes recent uses, after a write in progress. */
  #writeUses(): Promise<void> {
    this.#writing = this.#writing.then(() => this.#writeNewUses());
    return this.#writing;
  }

  async #writeNewUses(): Promise<void> {
    if (this.#uses.size === 0) return;
    const uses = new Map(this.#uses);
    this.#uses.clear();
    try {
      await recordKeyUse(this.#database, uses);
    } catch (error) {
      this.#onWriteError(error);
    }
  }
}
