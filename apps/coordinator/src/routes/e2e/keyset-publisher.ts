/**
 * `KeysetPublisher` publishes the keyset, the same bytes for everybody.
 *
 * A coordinator claims an epoch, logs the claim and stores the proof. Others complete abandoned claims, so each epoch has one leaf.
 */
import {
  canonicalJson,
  type E2eKeyset,
  type E2eKeysetProvider,
  fromUtf8,
  keysetLeafBytes,
  MAX_KEYSET_PROVIDERS,
} from '@inference/protocol';
import { sha256Hex } from '@inference/protocol/crypto';
import type { KeysetRepository, StoredKeyset } from '../../database/keyset-repository.js';
import { type Cached, TimedCache } from '../../telemetry/statistics/timed-cache.js';
import type { KeysetLog } from '../../transparency-log/transparency-log.js';

export interface PublishedKeyset {
  readonly body: string;
  /** Strong validator (RFC 9110 section 8.8.3). */
  readonly etag: string;
}

interface NetworkEntries {
  readonly entries: readonly E2eKeysetProvider[];
  /** Time of the newest registration among the entries, in milliseconds; minus infinity without entries. */
  readonly newestRegistrationAt: number;
}

interface KeysetPublisherOptions {
  readonly repository: Pick<KeysetRepository, 'newest' | 'newestClaim' | 'claim' | 'publish'>;
  /** Entries of the whole network. */
  readonly providers: () => Promise<NetworkEntries>;
  /** Null: keysets are in no transparency log. */
  readonly log: Pick<KeysetLog, 'publish'> | null;
  /** Milliseconds. */
  readonly now: () => number;
}

/** Minimum time between two published keysets, and maximum age in HTTP caches, in milliseconds. */
export const KEYSET_MAX_AGE_MS = 5000;
/** Minimum time between keysets that differ in records alone, because each keyset is a leaf of the log. */
const RECORDS_INTERVAL_MS = 60_000;
/** Age after which an unchanged keyset is published again: clients refuse keysets older than half an hour. */
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
    let newest = await repository.newest();
    const { entries, newestRegistrationAt } = await this.#options.providers();
    const providers = sortedProviders(entries);
    // Only a coordinator that has ended may have the record of a provider that registered since, so nobody serves the record.
    const areRecordsServed = ({ issuedAt }: StoredKeyset): boolean => newestRegistrationAt < issuedAt;
    if (newest !== null && areRecordsServed(newest) && isYounger(newest, KEYSET_MAX_AGE_MS, now)) return toPublishedKeyset(newest);
    const claim = await repository.newestClaim();
    const lastEpoch = Math.max(newest?.epoch ?? 0, claim?.epoch ?? 0);
    if (claim !== null && claim.epoch > (newest?.epoch ?? 0)) {
      const completed = await this.#complete(claim);
      // The hourly limit is reached, or witnesses are missing: the current keyset serves until its renewal is due.
      if (completed === null && newest !== null && isYounger(newest, RENEW_MS, now)) return toPublishedKeyset(newest);
      if (completed !== null && areRecordsServed(completed) && isYounger(completed, KEYSET_MAX_AGE_MS, now))
        return toPublishedKeyset(completed);
      newest = completed ?? newest;
    }
    const isFresh = newest !== null && isYounger(newest, RENEW_MS, now);
    if (newest !== null && isFresh) {
      const minRecordsAgeMs = areRecordsServed(newest) ? RECORDS_INTERVAL_MS : 0;
      if (!isChanged(newest, providers, now, minRecordsAgeMs)) return toPublishedKeyset(newest);
    }
    return toPublishedKeyset(await this.#publishNext({ v: 1, epoch: lastEpoch + 1, issued_at: now, providers }, isFresh ? newest : null));
  }

  /** Claims and publishes a keyset. `current` serves on while the log takes none; null: there is none that clients accept. */
  async #publishNext(keyset: E2eKeyset, current: StoredKeyset | null): Promise<StoredKeyset> {
    const { repository } = this.#options;
    const content = { epoch: keyset.epoch, body: fromUtf8(keysetLeafBytes(keyset)), issuedAt: keyset.issued_at };
    const claim = await repository.claim(content);
    // Null: another coordinator published meanwhile.
    const completed = claim === null ? await repository.newest() : await this.#complete(claim);
    if (completed !== null) return completed;
    if (current !== null) return current;
    // Published without a proof: clients that follow no log are served on.
    if (claim !== null && (await repository.publish(claim))) return claim;
    return (await repository.newest()) ?? content;
  }

  /** Logs a claim, once, and stores the proof. Returns the newest stored keyset; null: the log is unavailable. */
  async #complete(claim: StoredKeyset): Promise<StoredKeyset | null> {
    const { repository, log } = this.#options;
    const keyset = JSON.parse(claim.body) as E2eKeyset;
    const proof = log === null ? null : await log.publish(keysetLeafBytes(keyset));
    if (log !== null && proof === null) return null;
    const next = { ...claim, body: canonicalJson(proof === null ? keyset : { ...keyset, log: proof }) };
    // False: another coordinator completed the claim first.
    return (await repository.publish(next)) ? next : await repository.newest();
  }
}

function sortedProviders(entries: readonly E2eKeysetProvider[]): E2eKeysetProvider[] {
  return [...entries].sort((a, b) => (a.provider_id < b.provider_id ? -1 : 1)).slice(0, MAX_KEYSET_PROVIDERS);
}

/** A negative age means that the clock was set back. */
function isYounger({ issuedAt }: StoredKeyset, maxAgeMs: number, now: number): boolean {
  return now >= issuedAt && now - issuedAt < maxAgeMs;
}

/** Whether the entries differ from a fresh keyset's enough to be published now. Changes of records alone wait for `minRecordsAgeMs`. */
function isChanged(newest: StoredKeyset, providers: readonly E2eKeysetProvider[], now: number, minRecordsAgeMs: number): boolean {
  const known = (JSON.parse(newest.body) as E2eKeyset).providers;
  if (canonicalJson(known) === canonicalJson(providers)) return false;
  return !isYounger(newest, minRecordsAgeMs, now) || withoutRecords(known) !== withoutRecords(providers);
}

function withoutRecords(providers: readonly E2eKeysetProvider[]): string {
  return canonicalJson(providers.map(({ record_sha256: _, ...entry }) => entry));
}

function toPublishedKeyset({ body }: StoredKeyset): PublishedKeyset {
  return { body, etag: `"${sha256Hex(Buffer.from(body))}"` };
}
