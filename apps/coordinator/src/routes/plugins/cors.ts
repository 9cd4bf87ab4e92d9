/** `cors` is a Fastify plugin that lets web pages of all origins call routes under `/v1` (CORS, Fetch standard), without cookies. */
import fastifyPlugin from 'fastify-plugin';
import { pathOf } from './request-path.js';

/** Response headers that scripts may read, besides those of the Fetch standard. */
export const EXPOSED_HEADERS = [
  'accept-encoding',
  'age',
  'allow',
  'anthropic-ratelimit-requests-limit',
  'anthropic-ratelimit-requests-remaining',
  'anthropic-ratelimit-requests-reset',
  'content-disposition',
  'inference-e2e-recipient',
  'request-id',
  'retry-after',
  'x-attestation-device-serial',
  'x-attestation-se-public-key',
  'x-inference-cost-micro-usd',
  'x-inference-fallback-model',
  'x-inference-fallback-reason',
  'x-inference-ignored',
  'x-inference-job-id',
  'x-inference-receipt',
  'x-inference-receipt-signature',
  'x-inference-routing',
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

/** A day. */
export const PREFLIGHT_SECONDS = '86400';
/** List of header names, as browsers send it in `access-control-request-headers`. */
const HEADER_NAMES = /^[A-Za-z0-9!#$%&'*+.^_`|~, -]{1,4096}$/;

/** Also answers preflights for paths without a route for OPTIONS. */
export const cors = fastifyPlugin(
  async (server) => {
    const exposedHeaders = EXPOSED_HEADERS.join(', ');
    server.addHook('onRequest', (request, reply, done) => {
      if (!request.url.startsWith('/v1/')) return done();
      reply.header('access-control-allow-origin', '*');
      // Only browsers send `Origin` and read the list.
      if (request.headers.origin !== undefined) reply.header('access-control-expose-headers', exposedHeaders);
      if (!request.is404 || request.method !== 'OPTIONS' || request.headers['access-control-request-method'] === undefined) return done();
      const methods = server.methodsOf(pathOf(request));
      if (methods.size === 0) return done();
      const requested = request.headers['access-control-request-headers'];
      // A wildcard would not include `Authorization` (Fetch standard), so the requested names are echoed.
      const allowHeaders = requested !== undefined && HEADER_NAMES.test(requested) ? requested : 'authorization, content-type, x-api-key';
      reply
        .code(204)
        .headers({
          'access-control-allow-methods': [...methods].join(', '),
          'access-control-allow-headers': allowHeaders,
          'access-control-max-age': PREFLIGHT_SECONDS,
          vary: 'access-control-request-headers',
        })
        .send();
    });
  },
  { decorators: { fastify: ['methodsOf'] } },
);
