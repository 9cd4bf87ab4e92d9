/**
 * Publishes the keyset of the whole network. The bytes are the same for everybody: a new keyset is logged, then stored under its
 * epoch. The first coordinator to store an epoch wins, and all serve the newest stored keyset.
 */
import { canonicalJson, type E2eKeyset, type E2eKeysetProvider, keysetLeafBytes, MAX_KEYSET_PROVIDERS } from '@inference/protocol';
import { sha256Hex } from '@inference/protocol/crypto';
import type { KeysetRepository, StoredKeyset } from '../../database/keyset-repository.js';
import { type Cached, TimedCache } from '../../telemetry/statistics/timed-cache.js';
import type { KeysetLog } from '../../transparency-log/transparency-log.js';

export interface PublishedKeyset {
  readonly body: string;
  /** Strong validator (RFC 9110 section 8.8.3). */
  readonly etag: string;
}

interface KeysetPublisherOptions {
  readonly repository: Pick<KeysetRepository, 'newest' | 'publish'>;
  /** Entries of the whole network. */
  readonly providers: () => Promise<readonly E2eKeysetProvider[]>;
  /** Time of the newest registration among them, in milliseconds. Default: before every keyset. */
  readonly newestRegistrationAt?: () => number;
  /** Null: keysets are in no transparency log. */
  readonly log: Pick<KeysetLog, 'publish'> | null;
  /** Milliseconds. */
  readonly now: () => number;
}

/** Minimum time between two published keysets, and time for which HTTP caches keep one, in milliseconds. */
export const KEYSET_MAX_AGE_MS = 5000;
/** Minimum time between keysets that differ in records alone: each challenge changes a record, and each keyset is a leaf of the log. */
const RECORDS_INTERVAL_MS = 60_000;
/** Age after which an unchanged keyset is published again: clients refuse those older than half an hour. */
export const RENEW_MS = 600_000;

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
    // A negative age means that the clock was set back.
    const providers = await this.#providers();
    // A provider that registered since may have left its record with a coordinator that ended.
    const hasServedRecords = newest !== null && (this.#options.newestRegistrationAt?.() ?? Number.NEGATIVE_INFINITY) < newest.issuedAt;
    if (newest !== null && hasServedRecords && age >= 0 && age < KEYSET_MAX_AGE_MS) return published(newest);
    const isFresh = newest !== null && age >= 0 && age < RENEW_MS;
    if (isFresh) {
      const known = (JSON.parse(newest.body) as E2eKeyset).providers;
      if (canonicalJson(known) === canonicalJson(providers)) return published(newest);
      if (age < RECORDS_INTERVAL_MS && hasServedRecords && withoutRecords(known) === withoutRecords(providers)) return published(newest);
    }
    const { isLogged, ...next } = await this.#logged({ v: 1, epoch: (newest?.epoch ?? 0) + 1, issued_at: now, providers });
    // The hourly limit is reached, or witnesses are missing: the current keyset serves until its renewal is due.
    if (isFresh && !isLogged) return published(newest);
    if (await repository.publish(next)) return published(next);
    // Another coordinator was faster.
    return published((await repository.newest()) ?? next);
  }

  async #providers(): Promise<E2eKeysetProvider[]> {
    const providers = await this.#options.providers();
    return [...providers].sort((a, b) => (a.provider_id < b.provider_id ? -1 : 1)).slice(0, MAX_KEYSET_PROVIDERS);
  }

  /** `isLogged`: the log has the keyset, or there is no log. */
  async #logged(keyset: E2eKeyset): Promise<StoredKeyset & { readonly isLogged: boolean }> {
    const { log } = this.#options;
    const proof = (await log?.publish(keysetLeafBytes(keyset))) ?? null;
    const body = canonicalJson(proof === null ? keyset : { ...keyset, log: proof });
    return { epoch: keyset.epoch, body, issuedAt: keyset.issued_at, isLogged: log === null || proof !== null };
  }
}

function withoutRecords(providers: readonly E2eKeysetProvider[]): string {
  return canonicalJson(providers.map(({ record_sha256: _, ...entry }) => entry));
}

function published({ body }: StoredKeyset): PublishedKeyset {
  return { body, etag: `"${sha256Hex(Buffer.from(body))}"` };
}
