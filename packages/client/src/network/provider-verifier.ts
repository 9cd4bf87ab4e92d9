/** Verifies the providers of a keyset under the policy, and caches the verdicts. */
import {
  AttestationFeedSchema,
  type AttestationRecord,
  type E2eCrypto,
  type E2eKeysetProvider,
  type E2eLogHead,
  lazyValidator,
} from '@inference/protocol';
import { type ActiveTrustAnchor, FeedError, openFeed } from '@inference/verifier';
import type { Policy } from '../policy/policy.js';
import { E2ERefused } from '../refusal.js';
import { BoundedMap } from './bounded-map.js';
import { downloadJson } from './download.js';
import type { KeysetSource } from './keyset.js';
import { REFRESH_AFTER_MS } from './keyset-cache.js';
import type { LogEvidence } from './log-evidence.js';
import type { LogVerifier } from './log-verifier.js';
import type { ClientState } from './store.js';
import { type VerifiedProvider, verifyProvider } from './verified-provider.js';

/** Maximum cached verdicts. */
const MAX_VERDICTS = 256;

export interface ProviderVerifierOptions extends KeysetSource {
  readonly crypto: E2eCrypto;
  readonly policy: Policy;
  readonly state: ClientState;
  /** Null: the policy does not require the log. */
  readonly log: { readonly verifier: LogVerifier; readonly evidence: LogEvidence } | null;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

interface CachedVerdict {
  /** Members of the keyset entry that the verdict is about. */
  readonly subject: string;
  readonly result: VerifiedProvider | E2ERefused;
  readonly verifiedAt: number;
}

export class ProviderVerifier {
  readonly #options: ProviderVerifierOptions;
  /** Key: provider id. */
  readonly #verdicts = new BoundedMap<string, CachedVerdict>(MAX_VERDICTS);
  /** Running verifications, shared by concurrent requests. Key: subject. */
  readonly #running = new Map<string, Promise<VerifiedProvider>>();

  constructor(options: ProviderVerifierOptions) {
    this.#options = options;
  }

  /** Verifies a provider of the keyset whose tree head is `head`; null without the log. Throws {@link E2ERefused}. */
  verify(entry: E2eKeysetProvider, head: E2eLogHead | null): Promise<VerifiedProvider> {
    const subject = subjectOf(entry);
    const running = this.#running.get(subject);
    if (running !== undefined) return running;
    const verifying = this.#verify(entry, subject, head).finally(() => this.#running.delete(subject));
    this.#running.set(subject, verifying);
    return verifying;
  }

  async #verify(entry: E2eKeysetProvider, subject: string, head: E2eLogHead | null): Promise<VerifiedProvider> {
    const { policy } = this.#options;
    const now = this.#options.now();
    const cached = this.#verdicts.get(entry.provider_id);
    if (cached?.subject === subject && Math.abs(now - cached.verifiedAt) < REFRESH_AFTER_MS) {
      if (cached.result instanceof E2ERefused) throw cached.result;
      if (cached.result.usableUntil > now) return cached.result;
    }
    if (policy.minLogAge > 0) this.#requireLogAge(entry, now);
    const result = await this.#verdictOn(entry, head, now);
    this.#verdicts.set(entry.provider_id, { subject, result, verifiedAt: now });
    if (result instanceof E2ERefused) throw result;
    return result;
  }

  /** Returns a refusal that is a verdict, and may be cached. Throws other refusals, such as a failed download. */
  async #verdictOn(entry: E2eKeysetProvider, head: E2eLogHead | null, now: number): Promise<VerifiedProvider | E2ERefused> {
    const { crypto, policy, state, log } = this.#options;
    const record = await downloadRecord(this.#options, entry);
    const simulatedAnchor = policy.allowSimulated ? await downloadSimulatedAnchor(this.#options, entry.provider_id) : null;
    try {
      const provider = verifyProvider(crypto, { entry, record, simulatedAnchor, policy, hasSeenReal: state.hasSeenReal, now });
      if (log !== null && head !== null) await log.evidence.requireEntry(provider, entry.log_index, head);
      return provider;
    } catch (error) {
      if (error instanceof E2ERefused && error.code !== 'coordinator_said') return error;
      throw error;
    }
  }

  #requireLogAge(entry: E2eKeysetProvider, now: number): void {
    const { state, policy, log } = this.#options;
    const loggedBefore = entry.log_index === undefined ? null : (log?.verifier.loggedBefore(entry.log_index, state.log) ?? null);
    if (loggedBefore === null || now - loggedBefore < policy.minLogAge) {
      throw new E2ERefused('targeted', `Provider ${entry.provider_id}: it is not in the transparency log for long enough (minLogAge).`);
    }
  }
}

function subjectOf({ provider_id, record_sha256, key_id, log_index }: E2eKeysetProvider): string {
  return [provider_id, record_sha256, key_id, log_index ?? 'unlogged'].join(' ');
}

const validator = lazyValidator(AttestationFeedSchema.properties.providers.items);

/** Downloads the record of a keyset entry. The caller compares its hash. Throws {@link E2ERefused} `stale` (absent) or `policy`. */
async function downloadRecord(
  { fetch, base }: KeysetSource,
  { provider_id, record_sha256 }: Pick<E2eKeysetProvider, 'provider_id' | 'record_sha256'>,
): Promise<AttestationRecord> {
  const record = await downloadJson(fetch, `${base}/v1/e2e/records/${record_sha256}`, { whenMissing: 'stale' });
  if (!validator().Check(record)) throw new E2ERefused('policy', `Provider ${provider_id}: its attestation record is not valid.`);
  return record;
}

/** Downloads the trust anchor of the public attestation feed. Null unless the feed declares itself simulated. */
async function downloadSimulatedAnchor({ fetch, base }: KeysetSource, providerId: string): Promise<ActiveTrustAnchor | null> {
  const feed = await downloadJson(fetch, `${base}/v1/providers/attestation?provider_id=${providerId}`, {});
  try {
    const { anchor } = openFeed(feed);
    return anchor.simulated ? anchor : null;
  } catch (error) {
    if (error instanceof FeedError) throw new E2ERefused('policy', error.message);
    throw error;
  }
}
