/** `jobContext` builds the context of an attempt: the terms of the job in clear, bound to one provider and one of its sealing keys. */
import { DEFAULT_MAX_TOKENS } from '@inference/formats';
import type { JobContext, KeyId, ProviderId } from '@inference/protocol';
import type { JobRequest } from './job-request.js';

interface ContextInput {
  readonly providerId: ProviderId;
  readonly keyId: KeyId;
  /** Separates the prompt caches of accounts; see `CacheScopes`. Null for sealed requests. */
  readonly cacheScope: string | null;
  /** Milliseconds since 1970. */
  readonly now: number;
  readonly lifetimeMs: number;
}

export function jobContext(job: JobRequest, { providerId, keyId, cacheScope, now, lifetimeMs }: ContextInput): JobContext {
  // Members are in canonical JSON order, so that serialization need not sort them. Members after a spread would be slow (decision 0066).
  const terms: Omit<JobContext, 'cache_scope' | 'client_nonce'> = {
    created: job.responseMetadata.created,
    endpoint: job.endpoint,
    expires_at: now + lifetimeMs,
    issued_at: now,
    job_id: job.jobId,
    key_id: keyId,
    max_tokens: job.params.maxTokens ?? DEFAULT_MAX_TOKENS,
    model: job.params.model,
    overrides: overridesOf(job),
    provider_id: providerId,
    request_sha256: job.requestSha256,
    response_id: job.responseMetadata.responseId,
    stream: job.params.stream,
    v: 1,
  };
  const nonce = job.clientNonce === null ? {} : { client_nonce: job.clientNonce };
  return cacheScope === null ? { ...nonce, ...terms } : { cache_scope: cacheScope, ...nonce, ...terms };
}

/** Values that the provider must use in place of the body's, or in addition to the body. */
function overridesOf({ params, images, fetchedImages }: JobRequest): JobContext['overrides'] {
  return {
    ...(fetchedImages.length === 0 ? {} : { fetched_images: fetchedImages.map(({ sha256 }) => sha256) }),
    ...(params.maxTokens === null ? { max_tokens: DEFAULT_MAX_TOKENS } : {}),
    ...(images === null || images.urls === null ? {} : { image_urls: [...images.urls] }),
  };
}
