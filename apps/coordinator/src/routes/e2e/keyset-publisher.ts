/**
 * `KeysetPublisher` publishes the keyset of the network, with the sealing keys of all providers that serve the end-to-end mode. All clients
 * get the same bytes, from every coordinator. An epoch is the number of a keyset.
 *
 * To publish, a coordinator claims the next epoch in the database, appends the keyset to the transparency log, and stores the keyset with
 * the inclusion proof. If a coordinator stops in between, another one completes the claim, so an epoch has at most one leaf in the log.
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
  /** Time of the newest registration among the entries, in milliseconds. Minus infinity without entries. */
  readonly newestRegistrationAt: number;
}

interface KeysetPublisherOptions {
  readonly repository: Pick<KeysetRepository, 'newest' | 'newestClaim' | 'claim' | 'publish'>;
  readonly providers: () => Promise<NetworkEntries>;
  /** Transparency log, if any, that keysets are appended to. */
  readonly log: Pick<KeysetLog, 'publish'> | null;
  /** Milliseconds. */
  readonly now: () => number;
}

/** Time for which a keyset is served without a check for changes, and maximum age in HTTP caches, in milliseconds. */
export const KEYSET_MAX_AGE_MS = 5000;
/** Minimum time between keysets that differ only in record hashes. Each keyset adds a leaf to the log. */
const RECORDS_INTERVAL_MS = 60_000;
/** Age after which an unchanged keyset is published again. Clients refuse keysets older than half an hour. */
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
    // Only the coordinator where a provider registered has the record that the keyset references. If the provider has registered again
    // since, that coordinator may have stopped.
    const areRecordsServed = ({ issuedAt }: StoredKeyset): boolean => newestRegistrationAt < issuedAt;
    if (newest !== null && areRecordsServed(newest) && isYounger(newest, KEYSET_MAX_AGE_MS, now)) return toPublishedKeyset(newest);
    const claim = await repository.newestClaim();
    const lastEpoch = Math.max(newest?.epoch ?? 0, claim?.epoch ?? 0);
    if (claim !== null && claim.epoch > (newest?.epoch ?? 0)) {
      const completed = await this.#complete(claim);
      // Null: the hourly limit of the log is reached, or witnesses are missing. The current keyset is served while it is young enough.
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

  /** Claims and publishes a keyset. If the log does not accept the keyset, returns `current`, unless null. */
  async #publishNext(keyset: E2eKeyset, current: StoredKeyset | null): Promise<StoredKeyset> {
    const { repository } = this.#options;
    const content = { epoch: keyset.epoch, body: fromUtf8(keysetLeafBytes(keyset)), issuedAt: keyset.issued_at };
    const claim = await repository.claim(content);
    // Without a claim, another coordinator has published a keyset meanwhile.
    const completed = claim === null ? await repository.newest() : await this.#complete(claim);
    if (completed !== null) return completed;
    if (current !== null) return current;
    // Published without a proof, so that clients that do not check the log can continue.
    if (claim !== null && (await repository.publish(claim))) return claim;
    return (await repository.newest()) ?? content;
  }

  /** Appends a claimed keyset to the log and stores it with the proof. Null: the log does not accept the entry now. */
  async #complete(claim: StoredKeyset): Promise<StoredKeyset | null> {
    const { repository, log } = this.#options;
    const keyset = JSON.parse(claim.body) as E2eKeyset;
    const proof = log === null ? null : await log.publish(keysetLeafBytes(keyset));
    if (log !== null && proof === null) return null;
    const next = { ...claim, body: canonicalJson(proof === null ? keyset : { ...keyset, log: proof }) };
    // If not stored, another coordinator completed the claim first.
    return (await repository.publish(next)) ? next : await repository.newest();
  }
}

function sortedProviders(entries: readonly E2eKeysetProvider[]): E2eKeysetProvider[] {
  return [...entries].sort((a, b) => (a.provider_id < b.provider_id ? -1 : 1)).slice(0, MAX_KEYSET_PROVIDERS);
}

/** Also false for a negative age, after the clock was set back. */
function isYounger({ issuedAt }: StoredKeyset, maxAgeMs: number, now: number): boolean {
  return now >= issuedAt && now - issuedAt < maxAgeMs;
}

/** Whether `providers` differ from the keyset. If only record hashes differ, the keyset must be at least `minRecordsAgeMs` old. */
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
