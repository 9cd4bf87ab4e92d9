/**
 * Runs the verifier package in the browser, fetched on first use. Outsiders install the same package.
 *
 * Yields each step and lets the browser paint in between.
 */
import type { AttestationFeed, AttestationRecord } from '@inference/protocol';
import type { RecordVerdict, StageVerdict } from '@inference/verifier';
import { InputError } from './read-input.js';

/** Maximum records per file; whole networks are verified with the command-line tool. */
const MAX_RECORDS = 100;

type VerificationStep =
  /** The input has the right shape; `records` will be verified. */
  | { readonly type: 'opened'; readonly records: readonly AttestationRecord[]; readonly total: number; readonly anchor: AnchorName }
  | { readonly type: 'stage'; readonly record: AttestationRecord; readonly verdict: StageVerdict }
  | { readonly type: 'verdict'; readonly record: AttestationRecord; readonly verdict: RecordVerdict };

/** `maker`: root certificate pinned in the verifier; `simulated`: root that the record declares as simulated. */
export interface AnchorName {
  readonly kind: 'maker' | 'simulated';
  readonly name: string;
}

/** `newest-challenge` verifies a saved record as of the time of its newest challenge, as stated by the record. */
export type AsOf = 'now' | 'newest-challenge';

/** Verifies a feed, or a single record of a feed. Throws {@link InputError} for any other input. */
export async function* verifyInBrowser(downloaded: unknown, asOf: AsOf): AsyncGenerator<VerificationStep> {
  const verifier = await import('@inference/verifier');
  const { feed, anchor } = openDownloaded(verifier, downloaded);
  const records = feed.providers.slice(0, MAX_RECORDS);
  yield {
    type: 'opened',
    records,
    total: feed.providers.length,
    anchor: { kind: anchor.simulated ? 'simulated' : 'maker', name: anchor.simulated ? feed.trust_anchor.common_name : APPLE_ROOT },
  };
  for (const record of records) {
    await nextPaint();
    const stages = verifier.verifyInStages(record, momentOf(record, asOf), anchor);
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

function momentOf(record: AttestationRecord, asOf: AsOf): number {
  return asOf === 'now' ? Date.now() : (record.last_challenge?.answered_at ?? Date.now());
}

const APPLE_ROOT = 'Apple Enterprise Attestation Root CA';

function openDownloaded(verifier: typeof import('@inference/verifier'), downloaded: unknown) {
  try {
    return verifier.openFeed(isFeed(downloaded) ? downloaded : feedOf(downloaded));
  } catch (error) {
    if (error instanceof verifier.FeedError) throw new InputError(error.message);
    throw error;
  }
}

function isFeed(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'providers' in value;
}

/** A single record names no trust anchor, so Apple's root applies. */
function feedOf(record: unknown): Omit<AttestationFeed, 'providers'> & { readonly providers: readonly unknown[] } {
  return {
    providers: [record],
    apple_root_ca_url: '',
    apple_enterprise_root_ca: '',
    verification_instructions: '',
    trust_anchor: { common_name: '', name: '', public_key: '', simulated: false },
  };
}

/** Lets the browser paint. A background page does not paint, so a timer resolves as well. */
function nextPaint(): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, 50);
    requestAnimationFrame(() => {
      clearTimeout(timer);
      setTimeout(resolve);
    });
  });
}
