/**
 * `CacheScopes` derives cache scopes: ids that separate the accounts' prompt caches on a provider (decision 0014).
 *
 * A scope is a keyed hash of account and provider, so providers can neither identify an account nor link it across providers.
 *
 * Not used for sealed (end-to-end encrypted) requests, which may contain a secret from which the provider derives the scope.
 */
import { createHmac } from 'node:crypto';
import type { ProviderId } from '@inference/protocol';
import { BoundedMap } from '@inference/scheduler/bounded-map';

/** Name of the secret in the database, shared by all coordinators. */
export const CACHE_SCOPE_SECRET = 'cache-scope';

const SCOPE_DIGITS = 32;
const MAX_ACCOUNTS = 20_000;

export class CacheScopes {
  readonly #secret: Uint8Array;
  readonly #accountKeys = new BoundedMap<string, Uint8Array>(MAX_ACCOUNTS);

  constructor(secret: Uint8Array) {
    this.#secret = secret;
  }

  /** The scope of an account on a provider: 16 bytes in hexadecimal. */
  scope(accountId: string, providerId: ProviderId): string {
    return createHmac('sha256', this.#accountKey(accountId)).update(providerId).digest('hex').slice(0, SCOPE_DIGITS);
  }

  #accountKey(accountId: string): Uint8Array {
    const known = this.#accountKeys.get(accountId);
    if (known !== undefined) return known;
    const key = createHmac('sha256', this.#secret).update(accountId).digest();
    this.#accountKeys.set(accountId, key);
    return key;
  }
}
