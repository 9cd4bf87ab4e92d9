/**
 * What the coordinator publishes of this machine, checked as anybody may check it: with the verifier's own program, and against what
 * this machine knows of itself.
 */
import { type FeedError, type Finding, verifyFeed } from '@inference/verifier';
import { CoordinatorError, errorSentence, requestCoordinator } from './coordinator-http.js';

export interface PublishedRecord {
  readonly providerId: string;
  /** Whether certificates are checked to the maker's root, or to one of a simulation. */
  readonly anchor: 'maker' | 'simulated';
  readonly findings: readonly Finding[];
  /** Nothing in it is contradicted by its evidence. */
  readonly consistent: boolean;
}

/** The feed is of all machines that are connected. */
const FEED_MS = 30_000;

/** Null where nothing is published of this machine. Throws {@link CoordinatorError}. */
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
    throw new CoordinatorError('invalid_answer', `what ${coordinator} publishes was not understood: ${(error as Error).message}`);
  }
}
