/** `verifyPublishedRecord` verifies this machine's published attestation record as any client can: with the public verifier. */
import { type FeedError, type Finding, verifyFeed } from '@inference/verifier';
import { CoordinatorError, errorSentence, requestCoordinator } from './coordinator-http.js';

export interface PublishedRecord {
  readonly providerId: string;
  /** Trust anchor of the certificates: Apple's root, or a simulation's. */
  readonly anchor: 'maker' | 'simulated';
  readonly findings: readonly Finding[];
  /** True if no evidence contradicts the record. */
  readonly consistent: boolean;
}

/** Timeout of the attestation feed, which covers all connected machines. */
const FEED_MS = 30_000;

/** Null if no record of this machine is published. Throws {@link CoordinatorError}. */
export async function verifyPublishedRecord(coordinator: string, providerId: string, now: number): Promise<PublishedRecord | null> {
  const answer = await requestCoordinator(coordinator, '/v1/providers/attestation', { ms: FEED_MS });
  if (answer.status !== 200) {
    const kind = answer.status >= 500 || answer.status === 429 ? 'unreachable' : 'refused';
    throw new CoordinatorError(kind, errorSentence(answer), answer.status);
  }
  try {
    const { anchor, records } = verifyFeed(answer.value, now);
    const record = records.find((each) => each.providerId === providerId);
    return record === undefined ? null : { providerId, anchor, findings: record.findings, consistent: record.consistent };
  } catch (error) {
    if ((error as FeedError).name !== 'FeedError') throw error;
    throw new CoordinatorError('invalid_answer', `the attestation feed of ${coordinator} is invalid: ${(error as Error).message}`);
  }
}
