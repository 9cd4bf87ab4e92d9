/** Downloads of attestation records, and of the anchor of a simulated network. */
import { AttestationFeedSchema, type AttestationRecord, type E2eKeysetProvider } from '@inference/protocol';
import { type ActiveTrustAnchor, FeedError, openFeed } from '@inference/verifier';
import { Compile } from 'typebox/compile';
import { E2ERefused } from '../refusal.js';
import { downloadJson } from './download.js';
import type { KeysetSource } from './keyset.js';

const validator = Compile(AttestationFeedSchema.properties.providers.items);

/** Downloads the record of a keyset entry. The caller compares its hash. Throws {@link E2ERefused} `stale` (absent) or `policy`. */
export async function downloadRecord(
  { fetch, base }: KeysetSource,
  { provider_id, record_sha256 }: Pick<E2eKeysetProvider, 'provider_id' | 'record_sha256'>,
): Promise<AttestationRecord> {
  const record = await downloadJson(fetch, `${base}/v1/e2e/records/${record_sha256}`, { whenMissing: 'stale' });
  if (!validator.Check(record)) throw new E2ERefused('policy', `Provider ${provider_id}: its attestation record is not valid.`);
  return record;
}

/** Downloads the trust anchor of the public attestation feed. Null unless the feed declares itself simulated. */
export async function downloadSimulatedAnchor({ fetch, base }: KeysetSource, providerId: string): Promise<ActiveTrustAnchor | null> {
  const feed = await downloadJson(fetch, `${base}/v1/providers/attestation?provider_id=${providerId}`, {});
  try {
    const { anchor } = openFeed(feed);
    return anchor.simulated ? anchor : null;
  } catch (error) {
    if (error instanceof FeedError) throw new E2ERefused('policy', error.message);
    throw error;
  }
}
