/**
 * Rate limits by API key and by address, reported in OpenAI's headers, and in Anthropic's under `/v1/messages`. Counts are local to
 * the process; balances are protected by the ledger.
 */
import { setTimeout } from 'node:timers/promises';
import rateLimit from '@fastify/rate-limit';
import { apiError } from '@inference/formats';
import type { FastifyInstance, FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import { sendError } from './send-error.js';
import { SignInLimits } from './sign-in-limits.js';

/** Maximum requests per window; 0: no limit. */
interface RateLimitSettings {
  /** Requests per API key and minute. */
  readonly keyPerMinute: number;
  /** Requests per address and minute on routes without a key. */
  readonly addressPerMinute: number;
  /** Wrong keys per address and minute. */
  readonly badKeysPerMinute: number;
  /** Requests per address and minute on sign-up and sign-in routes. */
  readonly authPerMinute: number;
  /** Attempts per client and e-mail address in fifteen minutes, for sign-in and password resets. */
  readonly emailPerQuarter: number;
}

export interface RateLimits {
  /** For a request with a valid key. False: the limit is exceeded, and the request is answered. */
  admitApiKey(request: FastifyRequest, reply: FastifyReply): Promise<boolean>;
  /** Seconds until this address may present keys again; null if not blocked. */
  wrongKeyBlockSeconds(request: FastifyRequest): Promise<number | null>;
  countWrongKey(request: FastifyRequest): Promise<void>;
  /** Guard of routes without a key. Public statistics and records get the same limit automatically. */
  readonly publicRoutes: onRequestHookHandler;
  /** Guards the routes of signing in, by address. */
  readonly authRoutes: onRequestHookHandler;
  /** Limits by e-mail address. */
  readonly signIns: SignInLimits;
}

const MINUTE_MS = 60_000;
/** Maximum keys, and maximum addresses, counted at a time; the oldest are evicted. */
const MAX_COUNTED = 20_000;

/** Public routes, limited wherever they are registered. */
const PUBLIC_ROUTES: ReadonlySet<string> = new Set([
  '/v1/stats',
  '/v1/leaderboard',
  '/v1/network/totals',
  '/v1/providers/attestation',
  '/openapi.json',
]);

declare module 'fastify' {
  interface FastifyInstance {
    readonly rateLimits: RateLimits;
  }
}

/** Decorates a server without routes with its rate limits. */
export const rateLimits = fastifyPlugin<RateLimitSettings>(async (server, settings) => {
  server.decorate('rateLimits', await createRateLimits(server, settings));
});

async function createRateLimits(server: FastifyInstance, settings: RateLimitSettings): Promise<RateLimits> {
  await server.register(rateLimit, { global: false, cache: MAX_COUNTED });
  const byAddress = (max: number) => server.createRateLimit({ max, timeWindow: MINUTE_MS });
  const keys = server.createRateLimit({
    max: settings.keyPerMinute,
    timeWindow: MINUTE_MS,
    keyGenerator: (request) => request.apiKey?.id ?? '',
  });
  const badKeys = byAddress(settings.badKeysPerMinute);
  let wrongKeysUntil = 0;
  const publicLimit = guardWith(byAddress(settings.addressPerMinute), settings.addressPerMinute);
  const authLimit = byAddress(settings.authPerMinute);
  server.addHook('onRoute', (route) => {
    if (PUBLIC_ROUTES.has(route.url)) route.onRequest = [publicLimit, ...[route.onRequest ?? []].flat()];
  });

  return {
    admitApiKey: async (request, reply) => settings.keyPerMinute === 0 || admit(keys, request, reply),
    async wrongKeyBlockSeconds(request) {
      // Without a wrong key within the window no address is blocked, so most requests skip the lookup.
      if (settings.badKeysPerMinute === 0 || performance.now() > wrongKeysUntil) return null;
      const state = await badKeys(request, { increment: false });
      return !state.isAllowed && state.remaining === 0 ? state.ttlInSeconds : null;
    },
    async countWrongKey(request) {
      if (settings.badKeysPerMinute === 0) return;
      wrongKeysUntil = performance.now() + 2 * MINUTE_MS;
      await badKeys(request);
    },
    publicRoutes: publicLimit,
    authRoutes: guardWith(authLimit, settings.authPerMinute),
    signIns: new SignInLimits({
      perQuarter: settings.emailPerQuarter,
      now: Date.now,
      pause: (ms, signal) => setTimeout(ms, undefined, { signal }),
    }),
  };
}

type Limit = ReturnType<FastifyInstance['createRateLimit']>;

function guardWith(limit: Limit, max: number): onRequestHookHandler {
  return async (request, reply) => {
    if (max !== 0 && !(await admit(limit, request, reply))) return reply;
  };
}

async function admit(limit: Limit, request: FastifyRequest, reply: FastifyReply): Promise<boolean> {
  const state = await limit(request);
  if (state.isAllowed) return true;
  setLimitHeaders(request, reply, state);
  if (!state.isExceeded) return true;
  sendError(reply, apiError('rate_limit_exceeded', { retryAfter: state.ttlInSeconds }));
  return false;
}

/** Set on the raw response, so that hijacked responses carry the headers, too. */
function setLimitHeaders(request: FastifyRequest, reply: FastifyReply, state: { max: number; remaining: number; ttl: number }): void {
  const headers = isMessagesPath(request)
    ? {
        'anthropic-ratelimit-requests-limit': String(state.max),
        'anthropic-ratelimit-requests-remaining': String(state.remaining),
        'anthropic-ratelimit-requests-reset': new Date(Date.now() + state.ttl).toISOString(),
      }
    : {
        'x-ratelimit-limit-requests': String(state.max),
        'x-ratelimit-remaining-requests': String(state.remaining),
        'x-ratelimit-reset-requests': `${Math.ceil(state.ttl / 1000)}s`,
      };
  for (const [name, value] of Object.entries(headers)) reply.raw.setHeader(name, value);
}

function isMessagesPath(request: FastifyRequest): boolean {
  return /^\/v1\/messages(?:[/?]|$)/.test(request.url);
}
