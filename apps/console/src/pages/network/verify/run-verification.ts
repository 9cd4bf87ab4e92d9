/**
 * `verifyInBrowser`: verifies attestation records in the browser with `packages/verifier`, which is loaded on first use. The command line
 * tool `inference-verify` uses the same package.
 */
import type { AttestationFeed, AttestationRecord } from '@inference/protocol';
import type { RecordVerdict, StageVerdict } from '@inference/verifier';
import { InputError } from './read-input.js';

/** Maximum records per input. Larger feeds need the command line tool. */
const MAX_RECORDS = 100;

type VerificationStep =
  /** The input is valid, and verification of `records` begins. `total`: records in the input. */
  | { readonly type: 'opened'; readonly records: readonly AttestationRecord[]; readonly total: number; readonly anchor: VerificationAnchor }
  | { readonly type: 'stage'; readonly record: AttestationRecord; readonly verdict: StageVerdict }
  | { readonly type: 'verdict'; readonly record: AttestationRecord; readonly verdict: RecordVerdict };

/** Root of the certificates. `apple`: pinned in the verifier. `simulated`: named by the feed, which declares the root as simulated. */
export interface VerificationAnchor {
  readonly kind: 'apple' | 'simulated';
  readonly name: string;
}

/** Time of the verification. `newest-challenge`: time of the newest challenge in a saved record, or now if there is none. */
export type AsOf = 'now' | 'newest-challenge';

/**
 * Yields each stage, and lets the browser paint in between. Throws {@link InputError} unless `downloaded` is a feed or a single record.
 */
export async function* verifyInBrowser(downloaded: unknown, asOf: AsOf): AsyncGenerator<VerificationStep> {
  const verifier = await import('@inference/verifier');
  const { feed, anchor } = openDownloaded(verifier, downloaded);
  const records = feed.providers.slice(0, MAX_RECORDS);
  yield {
    type: 'opened',
    records,
    total: feed.providers.length,
    anchor: { kind: anchor.simulated ? 'simulated' : 'apple', name: anchor.simulated ? feed.trust_anchor.common_name : APPLE_ROOT },
  };
  for (const record of records) {
    await nextPaint();
    const stages = verifier.verifyInStages(record, verificationTime(record, asOf), anchor);
    for (let step = stages.next(); ; step = stages.next()) {
      if (step.done) {
        yield { type: 'verdict', record, verdict: step.value };
        break;
      }
      yield { type: 'stage', record, verdict: step.value };
      await nextPaint();
    }
  }
}

function verificationTime(record: AttestationRecord, asOf: AsOf): number {
  return asOf === 'now' ? Date.now() : (record.last_challenge?.answered_at ?? Date.now());
}

const APPLE_ROOT = 'Apple Enterprise Attestation Root CA';

function openDownloaded(verifier: typeof import('@inference/verifier'), downloaded: unknown) {
  try {
    return verifier.openFeed(isFeed(downloaded) ? downloaded : feedWithRecord(downloaded));
  } catch (error) {
    if (error instanceof verifier.FeedError) throw new InputError(error.message);
    throw error;
  }
}

function isFeed(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'providers' in value;
}

/** Makes a feed of a single record. The record names no trust anchor, so Apple's root applies. */
function feedWithRecord(record: unknown): Omit<AttestationFeed, 'providers'> & { readonly providers: readonly unknown[] } {
  return {
    providers: [record],
    apple_root_ca_url: '',
    apple_enterprise_root_ca: '',
    verification_instructions: '',
    trust_anchor: { common_name: '', name: '', public_key: '', simulated: false },
  };
}

/** Resolves after the next paint, or after 50 ms, because a page in the background never paints. */
function nextPaint(): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, 50);
    requestAnimationFrame(() => {
      clearTimeout(timer);
      setTimeout(resolve);
    });
  });
}
