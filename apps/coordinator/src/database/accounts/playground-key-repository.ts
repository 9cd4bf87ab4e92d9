/**
 * `PlaygroundKeyRepository`: short-lived API keys for the console's playground.
 *
 * The console needs them because inference routes accept no session cookies. A key is valid for an hour and a small amount.
 */
import type { Database } from '../tables.js';
import { lockAccount } from './account-repository.js';
import type { ApiKeyCache } from './api-key-cache.js';
import { addKey, type KeyLimits, newKeyText, revokeKey } from './api-key-repository.js';

export const PLAYGROUND_KEY_MS = 3_600_000;
/** In micro-USD: 1 USD, which buys hundreds of responses at the default prices. */
const PLAYGROUND_SPEND_LIMIT = 1_000_000;
/** Maximum valid keys per user and account. A further key revokes the oldest. */
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

  /** Creates a key of an account for a user. The text is not stored. Revokes the user's expired keys, and the oldest above the maximum. */
  async create(accountId: string, userId: string = accountId): Promise<PlaygroundKey> {
    const now = this.#now();
    const expiresAt = now + PLAYGROUND_KEY_MS;
    const limits: KeyLimits = { expiresAt, spendLimit: PLAYGROUND_SPEND_LIMIT, budget: null, models: null, signatureForm: null };
    const text = newKeyText();
    const { id, ended } = await this.#database.transaction().execute(async (transaction) => {
      await lockAccount(transaction, accountId);
      const open = (await openKeys(transaction, userId)).filter((key) => key.account_id === accountId);
      const live = open.filter(({ expires_at }) => expires_at !== null && expires_at > now);
      const expired = open.filter((key) => !live.includes(key));
      const ended = [...expired, ...live.slice(MAX_PLAYGROUND_KEYS - 1)].map((key) => key.id);
      await revokeKeys(transaction, ended, now);
      const created = { createdFor: 'playground', createdBy: userId } as const;
      const id = await addKey(transaction, { accountId, kind: 'api', text, name: NAME, limits, ...created, now });
      return { id, ended };
    });
    for (const one of ended) this.#apiKeyCache.changed(one);
    return { id, text, expiresAt, spendLimit: PLAYGROUND_SPEND_LIMIT };
  }

  /** Revokes all playground keys of a user, for example at sign-out. `writeMore`: further writes of the same transaction. */
  async revokeAll(userId: string, writeMore?: (transaction: Database) => Promise<void>): Promise<void> {
    const now = this.#now();
    const revoked = await this.#database.transaction().execute(async (transaction) => {
      await writeMore?.(transaction);
      const ids = (await openKeys(transaction, userId)).map((key) => key.id);
      await revokeKeys(transaction, ids, now);
      return ids;
    });
    for (const id of revoked) this.#apiKeyCache.changed(id);
  }
}

/** Revokes keys in the order in which `recordKeyUse` locks their rows, to avoid deadlocks. */
async function revokeKeys(transaction: Database, ids: readonly string[], now: number): Promise<void> {
  for (const id of [...ids].sort()) await revokeKey(transaction, id, now);
}

interface OpenKey {
  readonly id: string;
  readonly account_id: string;
  readonly expires_at: number | null;
}

/** Unrevoked keys of a user, newest first: keys of the personal account, and keys that the user created for organisations. */
function openKeys(database: Database, userId: string): Promise<OpenKey[]> {
  return database
    .selectFrom('api_keys')
    .select(['id', 'account_id', 'expires_at'])
    .where((where) => where.or([where('account_id', '=', userId), where('created_by', '=', userId)]))
    .where('made_for', '=', 'playground')
    .where('revoked_at', 'is', null)
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .execute();
}
