/**
 * One client's request, reduced to what the coordinator needs: facts from the body, and the body itself as opaque bytes.
 * Nothing after this file looks into the body.
 */
import { randomUUID } from 'node:crypto';
import { type AnswerFormat, apiError, type Envelope, formatFor, RequestError, type RequestFacts } from '@inference/formats';
import { type Endpoint, fromBase64Url, type JobContext, type JobId } from '@inference/protocol';
import { sha256Hex } from '@inference/protocol/crypto';
import type { OnlineSession } from '../fleet/provider-session.js';
import { DEFAULT_MAX_TOKENS } from './timings.js';

export interface JobRequest {
  readonly jobId: JobId;
  readonly accountId: string;
  readonly endpoint: Endpoint;
  readonly facts: RequestFacts;
  readonly envelope: Envelope;
  /** What of the answer the coordinator itself writes. */
  readonly answer: AnswerFormat;
  /** The client's body, byte for byte. */
  readonly body: Uint8Array;
  readonly requestSha256: string;
  readonly clientNonce: string | null;
}

/** Reads a request. Throws RequestError naming what is wrong with it. `now` in milliseconds. */
export function readJobRequest(input: {
  readonly endpoint: Endpoint;
  readonly body: Uint8Array;
  readonly accountId: string;
  readonly nonceHeader: string | undefined;
  readonly now: number;
}): JobRequest {
  const { facts, answer } = formatFor(input.endpoint).parse(input.body);
  const clientNonce = readNonce(input.nonceHeader);
  const jobId = randomUUID() as JobId;
  return {
    jobId,
    accountId: input.accountId,
    endpoint: input.endpoint,
    facts,
    envelope: { responseId: answer.idPrefix + jobId.replaceAll('-', ''), created: Math.floor(input.now / 1000), model: facts.model },
    answer,
    body: input.body,
    requestSha256: sha256Hex(input.body),
    clientNonce,
  };
}

/** The context that binds a job to one provider and one of its keys. Null when the provider has no valid key left. */
export function jobContext(job: JobRequest, session: OnlineSession, now: number, lifetimeMs: number): JobContext | null {
  const key = session.key;
  if (key === null) return null;
  return {
    v: 1,
    job_id: job.jobId,
    provider_id: session.registration.identity.providerId,
    key_id: key.keyId,
    endpoint: job.endpoint,
    model: job.facts.model,
    stream: job.facts.stream,
    max_tokens: job.facts.maxTokens ?? DEFAULT_MAX_TOKENS,
    overrides: job.facts.maxTokens === null ? { max_tokens: DEFAULT_MAX_TOKENS } : {},
    response_id: job.envelope.responseId,
    created: job.envelope.created,
    request_sha256: job.requestSha256,
    ...(job.clientNonce === null ? {} : { client_nonce: job.clientNonce }),
    issued_at: now,
    expires_at: now + lifetimeMs,
  };
}

function readNonce(header: string | undefined): string | null {
  if (header === undefined) return null;
  try {
    if (fromBase64Url(header).length === 32) return header;
  } catch {
    // Falls through to the one message that says what is wanted.
  }
  const { code, message } = apiError('invalid_request', { message: 'X-Inference-Nonce must be 32 bytes in base64url without padding.' });
  throw new RequestError(code, 'X-Inference-Nonce', message);
}
