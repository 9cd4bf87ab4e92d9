/** Download of one provider's attestation record. */
import { AttestationFeedSchema, type AttestationRecord, type ProviderId } from '@inference/protocol';
import { type ActiveTrustAnchor, FeedError, openFeed } from '@inference/verifier';
import { Compile } from 'typebox/compile';
import { E2ERefused } from '../refusal.js';
import { type DownloadOptions, downloadJson } from './download.js';
import type { KeysetSource } from './keyset.js';

const validator = Compile(AttestationFeedSchema);

export interface DownloadedRecord {
  readonly record: AttestationRecord;
  /** Anchor that the feed publishes when it calls itself simulated; null otherwise. */
  readonly simulatedAnchor: ActiveTrustAnchor | null;
}

/** Throws {@link E2ERefused} `targeted` without such a record, `policy` for an invalid one. */
export async function downloadRecord(
  { fetch, base }: KeysetSource,
  providerId: ProviderId,
  options: DownloadOptions,
): Promise<DownloadedRecord> {
  const feed = await downloadJson(fetch, `${base}/v1/providers/attestation?provider_id=${providerId}`, options);
  if (!validator.Check(feed)) throw new E2ERefused('policy', `Provider ${providerId}: its attestation record is not valid.`);
  const record = feed.providers.find(({ provider_id }) => provider_id === providerId);
  if (record === undefined) throw new E2ERefused('targeted', `Provider ${providerId}: the attestation feed does not name it.`);
  return { record, simulatedAnchor: simulatedAnchorOf(feed) };
}

function simulatedAnchorOf(feed: unknown): ActiveTrustAnchor | null {
  try {
    const { anchor } = openFeed(feed);
    return anchor.simulated ? anchor : null;
  } catch (error) {
    if (error instanceof FeedError) throw new E2ERefused('policy', error.message);
    throw error;
  }
}
