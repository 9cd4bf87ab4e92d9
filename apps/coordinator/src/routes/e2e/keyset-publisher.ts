/**
 * Publishes the keyset of the whole network. The bytes are the same for everybody: each new keyset is stored under its epoch first,
 * and all coordinators serve the newest stored one.
 */
import { canonicalJson, type E2eKeyset, type E2eKeysetProvider, keysetLeafBytes, MAX_KEYSET_PROVIDERS } from '@inference/protocol';
import { sha256Hex } from '@inference/protocol/crypto';
import type { KeysetRepository, StoredKeyset } from '../../database/keyset-repository.js';
import { type Cached, TimedCache } from '../../telemetry/statistics/timed-cache.js';
import type { KeysetLog } from './keyset-log.js';

export interface PublishedKeyset {
  readonly body: string;
  /** Strong validator (RFC 9110 section 8.8.3). */
  readonly etag: string;
}

interface KeysetPublisherOptions {
  readonly repository: Pick<KeysetRepository, 'newest' | 'publish'>;
  /** Entries of the whole network. */
  readonly providers: () => Promise<readonly E2eKeysetProvider[]>;
  readonly log: KeysetLog | null;
  /** Milliseconds. */
  readonly now: () => number;
}

/** Time for which a keyset is served without another look at the providers, in milliseconds. */
export const KEYSET_MAX_AGE_MS = 5000;
/** Age after which an unchanged keyset is published again: clients refuse old ones. */
const RENEW_MS = 60_000;

export class KeysetPublisher {
  readonly #options: KeysetPublisherOptions;
  readonly #cache: TimedCache<PublishedKeyset>;

  constructor(options: KeysetPublisherOptions) {
    this.#options = options;
    this.#cache = new TimedCache({ maxAgeMs: KEYSET_MAX_AGE_MS, now: options.now, make: (now) => this.#make(now) });
  }

  current(): Promise<Cached<PublishedKeyset>> {
    return this.#cache.get();
  }

  async #make(now: number): Promise<PublishedKeyset> {
    const { repository } = this.#options;
    const newest = await repository.newest();
    const age = newest === null ? Number.POSITIVE_INFINITY : now - newest.issuedAt;
    if (newest !== null && age >= 0 && age < KEYSET_MAX_AGE_MS) return published(newest);
    const providers = await this.#providers();
    const isUnchanged = newest !== null && canonicalJson((JSON.parse(newest.body) as E2eKeyset).providers) === canonicalJson(providers);
    if (isUnchanged && age >= 0 && age < RENEW_MS) return published(newest);
    const next = await this.#stored({ v: 1, epoch: (newest?.epoch ?? 0) + 1, issued_at: now, providers });
    if (await repository.publish(next)) return published(next);
    // Another coordinator was faster.
    return published((await repository.newest()) ?? next);
  }

  async #providers(): Promise<E2eKeysetProvider[]> {
    const providers = await this.#options.providers();
    return [...providers].sort((a, b) => (a.provider_id < b.provider_id ? -1 : 1)).slice(0, MAX_KEYSET_PROVIDERS);
  }

  async #stored(keyset: E2eKeyset): Promise<StoredKeyset> {
    const log = (await this.#options.log?.publish(keysetLeafBytes(keyset))) ?? null;
    const body = canonicalJson(log === null ? keyset : { ...keyset, log });
    return { epoch: keyset.epoch, body, issuedAt: keyset.issued_at };
  }
}

function published({ body }: StoredKeyset): PublishedKeyset {
  return { body, etag: `"${sha256Hex(Buffer.from(body))}"` };
}
