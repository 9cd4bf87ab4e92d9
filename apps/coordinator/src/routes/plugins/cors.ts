/**
 * CORS (Fetch standard) for routes under `/v1`, so browser apps can call the API with a key. Responses never allow credentials:
 * another site's page cannot use a visitor's session.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';

/** Response headers for clients, except trailers. Browsers hide unlisted headers from scripts. */
export const EXPOSED_HEADERS = [
  'accept-encoding',
  'age',
  'allow',
  'anthropic-ratelimit-requests-limit',
  'anthropic-ratelimit-requests-remaining',
  'anthropic-ratelimit-requests-reset',
  'content-disposition',
  'request-id',
  'retry-after',
  'x-attestation-device-serial',
  'x-attestation-se-public-key',
  'x-inference-cost-micro-usd',
  'x-inference-ignored',
  'x-inference-job-id',
  'x-inference-receipt',
  'x-inference-receipt-signature',
  'x-provider-attested',
  'x-provider-chip',
  'x-provider-id',
  'x-provider-mda-verified',
  'x-provider-model',
  'x-provider-secure-enclave',
  'x-provider-serial',
  'x-provider-trust-level',
  'x-ratelimit-limit-requests',
  'x-ratelimit-remaining-requests',
  'x-ratelimit-reset-requests',
  'x-request-id',
  'x-response-hash',
  'x-se-signature',
  'x-should-retry',
] as const;

const PREFLIGHT_SECONDS = '86400';
/** Header names, as browsers list them. */
const HEADER_NAMES = /^[A-Za-z0-9!#$%&'*+.^_`|~, -]{1,4096}$/;

/** Allows every origin to read a response. Set on the raw response, so that streams carry the headers, too. */
export function allowOrigins(request: FastifyRequest, reply: FastifyReply): void {
  if (!isApi(request)) return;
  reply.raw.setHeader('access-control-allow-origin', '*');
  // Only browsers send Origin and read the list.
  if (request.headers.origin !== undefined) reply.raw.setHeader('access-control-expose-headers', EXPOSED_HEADERS.join(', '));
}

/** Answers a browser's preflight for a path with these methods. False if the request is not a preflight. */
export function answerPreflight(request: FastifyRequest, reply: FastifyReply, methods: Iterable<string>): boolean {
  if (!isApi(request) || request.method !== 'OPTIONS' || request.headers['access-control-request-method'] === undefined) return false;
  const allowed = [...methods];
  if (allowed.length === 0) return false;
  const asked = request.headers['access-control-request-headers'];
  // A wildcard would exclude Authorization, so the requested names are echoed.
  const allowHeaders = asked !== undefined && HEADER_NAMES.test(asked) ? asked : 'authorization, content-type, x-api-key';
  reply
    .code(204)
    .headers({
      'access-control-allow-methods': allowed.join(', '),
      'access-control-allow-headers': allowHeaders,
      'access-control-max-age': PREFLIGHT_SECONDS,
      vary: 'access-control-request-headers',
    })
    .send();
  return true;
}

function isApi({ url }: FastifyRequest): boolean {
  return url.startsWith('/v1/');
}
