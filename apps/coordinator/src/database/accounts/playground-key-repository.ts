/** `PlaygroundKeyRepository`: keys for the playground, because inference accepts no sessions. Valid for an hour and a small amount. */
import type { Database } from '../tables.js';
import { lockAccount } from './account-repository.js';
import type { ApiKeyCache } from './api-key-cache.js';
import { addKey, type KeyLimits, newKeyText, revokeKey } from './api-key-repository.js';

export const PLAYGROUND_KEY_MS = 3_600_000;
/** Micro-USD: a dollar buys hundreds of responses at the default prices. */
const PLAYGROUND_SPEND_LIMIT = 1_000_000;
/** Maximum per account, for parallel pages. Beyond the maximum the oldest key is revoked. */
export const MAX_PLAYGROUND_KEYS = 10;
const NAME = 'Playground';

interface PlaygroundKey {
  readonly id: string;
  readonly text: string;
  readonly expiresAt: number;
  readonly spendLimit: number;
}

export class PlaygroundKeyRepository {
  readonly #database: Database;
  readonly #apiKeyCache: ApiKeyCache;
  readonly #now: () => number;

  constructor(options: { database: Database; apiKeyCache: ApiKeyCache; now: () => number }) {
    this.#database = options.database;
    this.#apiKeyCache = options.apiKeyCache;
    this.#now = options.now;
  }

  /** Creates a key. The returned text is not stored. Revokes expired keys, and the oldest beyond the maximum. */
  async create(accountId: string): Promise<PlaygroundKey> {
    const now = this.#now();
    const expiresAt = now + PLAYGROUND_KEY_MS;
    const limits: KeyLimits = { expiresAt, spendLimit: PLAYGROUND_SPEND_LIMIT, budget: null, models: null, signatureForm: null };
    const text = newKeyText();
    const { id, ended } = await this.#database.transaction().execute(async (transaction) => {
      await lockAccount(transaction, accountId);
      const open = await openKeys(transaction, accountId);
      const live = open.filter(({ expires_at }) => expires_at !== null && expires_at > now);
      const expired = open.filter((key) => !live.includes(key));
      const ended = new Set([...expired, ...live.slice(MAX_PLAYGROUND_KEYS - 1)].map((key) => key.id));
      for (const one of ended) await revokeKey(transaction, one, now);
      const id = await addKey(transaction, { accountId, kind: 'api', text, name: NAME, limits, createdFor: 'playground', now });
      return { id, ended };
    });
    for (const one of ended) this.#apiKeyCache.changed(one);
    return { id, text, expiresAt, spendLimit: PLAYGROUND_SPEND_LIMIT };
  }

  /** Revokes all playground keys of an account, for example at sign-out. */
  async revokeAll(accountId: string): Promise<void> {
    for (const { id } of await openKeys(this.#database, accountId)) await this.#apiKeyCache.revoke(id);
  }
}

/** Unrevoked keys, newest first. */
function openKeys(database: Database, accountId: string): Promise<{ id: string; expires_at: number | null }[]> {
  return database
    .selectFrom('api_keys')
    .select(['id', 'expires_at'])
    .where('account_id', '=', accountId)
    .where('made_for', '=', 'playground')
    .where('revoked_at', 'is', null)
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .execute();
}
