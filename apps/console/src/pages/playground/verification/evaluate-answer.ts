/**
 * `evaluateAnswer`: verifies a response of the playground with `packages/verifier`. Hash, signature and receipt must match the received
 * bytes under the key in the provider's attestation record, which is verified too.
 *
 * Loaded lazily, because the cryptographic code is large.
 */
import type { AttestationFeed, Receipt } from '@inference/protocol';
import { type AnswerVerdict, FeedError, type ReceivedAnswer, verifyAnswer } from '@inference/verifier';
import type { CheckLine } from '../../../features/trust/check-line.js';
import { headersOf, type ProviderFacts } from '../requests/provider-facts.js';
import type { AnswerCheck, ReceiptFacts } from './check-answer.js';

export interface Evidence {
  /** Exact text of the request body. */
  readonly requestBody: string;
  readonly nonce: string | null;
  /** Path of the called endpoint. Absent: not compared. */
  readonly endpoint?: string;
  readonly provider: ProviderFacts | null;
  /** Attestation feed. Null: the download failed. */
  readonly feed: unknown;
  readonly answer:
    | { readonly kind: 'stream'; readonly bytes: Uint8Array }
    | {
        readonly kind: 'plain';
        readonly bytes: Uint8Array;
        readonly headers: Pick<Headers, 'get'>;
        /** Downloaded from the URLs in the response. */
        readonly images?: readonly Uint8Array[];
      };
}

/** `now` in milliseconds. */
export function evaluateAnswer(evidence: Evidence, now: number): AnswerCheck {
  const { provider, feed } = evidence;
  if (provider === null) return failedCheck([{ ok: false, text: 'The response does not name its machine.' }]);
  if (feed === null) {
    return { state: 'unknown', reason: 'The attestation feed could not be downloaded, so there is no key to verify the response with.' };
  }
  const { providers } = feed as Partial<AttestationFeed>;
  const isListed = Array.isArray(providers) && providers.some(({ provider_id }) => provider_id === provider.id);
  if (!isListed) return NOT_IN_FEED;
  let verdict: AnswerVerdict;
  try {
    verdict = verifyAnswer(receivedAnswer(evidence, provider), now);
  } catch (error) {
    if (error instanceof FeedError) return failedCheck([{ ok: false, text: error.message }]);
    throw error;
  }
  if (verdict.enclave === null) return NOT_IN_FEED;
  return {
    state: verdict.verified ? 'verified' : 'failed',
    lines: verdict.checks.map(({ result, explanation }) => ({ ok: result === 'ok', text: explanation })),
    enclave: verdict.enclave,
    jobId: verdict.receipt?.job_id ?? provider.jobId,
    receipt: verdict.receipt === null ? null : receiptFacts(verdict.receipt),
  };
}

function receiptFacts({ model, usage, completed_at }: Receipt): ReceiptFacts {
  return { model, usage: { prompt: usage.prompt_tokens, completion: usage.completion_tokens }, completedAt: completed_at };
}

const NOT_IN_FEED: AnswerCheck = {
  state: 'unknown',
  reason: 'The machine is not in the attestation feed, so there is no key to verify its response with.',
};

function receivedAnswer({ requestBody, nonce, endpoint, feed, answer }: Evidence, provider: ProviderFacts): ReceivedAnswer {
  const common = {
    request: new TextEncoder().encode(requestBody),
    endpoint: endpoint ?? null,
    nonce,
    feed: onlyOf(feed, provider.id),
    body: answer.bytes,
  };
  if (answer.kind === 'plain')
    return { ...common, headers: answer.headers, ...(answer.images === undefined ? {} : { images: answer.images }) };
  return { ...common, headers: { 'content-type': 'text/event-stream', ...headersOf(provider) } };
}

/** Removes the records of other providers, which would otherwise be verified too. */
function onlyOf(feed: unknown, providerId: string): unknown {
  const all = feed as Partial<AttestationFeed>;
  return Array.isArray(all.providers) ? { ...all, providers: all.providers.filter(({ provider_id }) => provider_id === providerId) } : feed;
}

function failedCheck(lines: readonly CheckLine[]): AnswerCheck {
  return { state: 'failed', lines, enclave: 'claimed', jobId: null, receipt: null };
}
