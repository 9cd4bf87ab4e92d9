/**
 * `LocalKeyset` computes this coordinator's entries of the keyset, the list of the sealing keys of all providers in the network.
 *
 * Also retains the attestation records that recent entries reference by hash.
 */
import {
  canonicalJsonBytes,
  type E2eKeysetProvider,
  E2eKeysetProviderSchema,
  fromUtf8,
  type JsonValue,
  type ProviderId,
  toBase64,
} from '@inference/protocol';
import { sha256Hex } from '@inference/protocol/crypto';
import Type, { type Static } from 'typebox';
import type { ProviderRegistry } from '../../providers/provider-registry.js';
import type { ProviderSnapshot } from '../../providers/provider-snapshot.js';
import type { TrustAnchor } from '../../providers/verification/chain/trust-anchor.js';
import { TimedCache } from '../../telemetry/statistics/timed-cache.js';
import type { KeysetLog } from '../../transparency-log/transparency-log.js';
import { attestationRecord } from '../providers/attestation-record.js';
import { RENEW_MS } from './keyset-publisher.js';

/** Version of the end-to-end protocol that providers must support. */
const E2E_VERSION = 1;
/** Maxima of `models` and `weight` in `E2eKeysetProviderSchema`. The register message already has the same limits. */
const MAX_MODELS = 64;
const MAX_WEIGHT = 1024;
/** `KeysetPublisher` serves a keyset for at most `RENEW_MS`. Clients then still need some time to download its records. */
const RECORD_LIFETIME_MS = RENEW_MS + 60_000;
/** Maximum age of computed entries, in milliseconds. */
const ENTRIES_MAX_AGE_MS = 2000;

/** `registered_at` decides between the entries of a provider that moved between coordinators (`newestRegistrations`). */
export const KeysetEntriesSchema = Type.Array(
  Type.Object({ provider_id: Type.Unsafe<ProviderId>(Type.String()), registered_at: Type.Number(), entry: E2eKeysetProviderSchema }),
);
export type KeysetEntries = Static<typeof KeysetEntriesSchema>;

interface LocalKeysetOptions {
  readonly registry: ProviderRegistry;
  readonly anchor: TrustAnchor;
  /** Without a transparency log, entries have no `log_index`. */
  readonly log: Pick<KeysetLog, 'providerIndex'> | null;
  /** Called when a key could not be appended to the log. Not called again before one was appended. */
  readonly onLogError: (error: unknown) => void;
  readonly now: () => number;
}

export class LocalKeyset {
  readonly #options: LocalKeysetOptions;
  readonly #entries: TimedCache<KeysetEntries>;
  /** Canonical JSON of records, retained while a served keyset may reference them. */
  readonly #recordBySha256 = new Map<string, { readonly text: string; readonly lastReferencedAt: number }>();
  /** Whether the last attempt to append a key failed. Cached indexes do not end an outage. */
  #isLogFailing = false;

  constructor(options: LocalKeysetOptions) {
    this.#options = options;
    this.#entries = new TimedCache({ maxAgeMs: ENTRIES_MAX_AGE_MS, now: options.now, make: (now) => this.#compute(now) });
  }

  async entries(): Promise<KeysetEntries> {
    return (await this.#entries.get()).value;
  }

  /** Canonical JSON. Null if unknown, or no longer retained. */
  record(sha256: string): string | null {
    return this.#recordBySha256.get(sha256)?.text ?? null;
  }

  async #compute(now: number): Promise<KeysetEntries> {
    const { registry, anchor } = this.#options;
    const { namesOf } = registry.models.listing();
    const entries: KeysetEntries = [];
    for (const provider of registry.snapshots()) {
      const models = namesOf(provider);
      const entry = entryOf(provider, models);
      if (entry === null) continue;
      const record = canonicalJsonBytes(attestationRecord(provider, models, anchor) as unknown as JsonValue);
      const record_sha256 = sha256Hex(record);
      this.#recordBySha256.set(record_sha256, { text: fromUtf8(record), lastReferencedAt: now });
      const { identity, registeredAt } = provider.registration;
      // The log lists enclave keys, not sealing keys.
      const logged = await this.#logIndex(identity.publicKey);
      entries.push({ provider_id: entry.provider_id, registered_at: registeredAt, entry: { ...entry, record_sha256, ...logged } });
    }
    for (const [sha256, { lastReferencedAt }] of this.#recordBySha256)
      if (now - lastReferencedAt > RECORD_LIFETIME_MS) this.#recordBySha256.delete(sha256);
    return entries;
  }

  /**
   * Index of the enclave key in the log. Has no member without a log, or while the log fails or accepts no more providers. Only clients
   * that require the log then refuse the provider.
   */
  async #logIndex(publicKey: Uint8Array): Promise<Pick<E2eKeysetProvider, 'log_index'>> {
    const { log, onLogError } = this.#options;
    try {
      const logged = (await log?.providerIndex(publicKey)) ?? null;
      if (logged === null) return {};
      if (!logged.isCached) this.#isLogFailing = false;
      return { log_index: logged.index };
    } catch (error) {
      if (!this.#isLogFailing) onLogError(error);
      this.#isLogFailing = true;
      return {};
    }
  }
}

/** Returns the keyset entry of a provider, without record hash and log index. Null if no request may be sealed to the provider now. */
function entryOf(
  { registration, key, trust, status }: ProviderSnapshot,
  models: readonly string[],
): Omit<E2eKeysetProvider, 'record_sha256'> | null {
  const { identity, e2eVersions, slots } = registration;
  // `key` is null after the sealing key has expired.
  if (key === null || trust.level === null || status !== 'online' || models.length === 0 || !e2eVersions.includes(E2E_VERSION)) return null;
  return {
    provider_id: identity.providerId,
    key_id: key.keyId,
    x25519: toBase64(key.publicKey),
    not_after: key.notAfter,
    models: [...models].sort().slice(0, MAX_MODELS),
    weight: Math.min(slots, MAX_WEIGHT),
  };
}
