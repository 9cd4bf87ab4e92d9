/**
 * How much one key and one address may ask for in a while, told in the headers of the field: OpenAI's
 * names, and Anthropic's under `/v1/messages`. Counts are this process's own; the ledger, not they, guards the money.
 */
import { setTimeout } from 'node:timers/promises';
import rateLimit from '@fastify/rate-limit';
import { apiError } from '@inference/formats';
import type { FastifyInstance, FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify';
import { sendError } from './send-error.js';
import { SignInLimits } from './sign-in-limits.js';

/** Most requests in a window; 0 sets no limit. */
export interface RateLimitSettings {
  /** Of one API key, in a minute. */
  readonly keyPerMinute: number;
  /** Of one address at what takes no key, in a minute. */
  readonly addressPerMinute: number;
  /** Wrong keys from one address, in a minute. */
  readonly badKeysPerMinute: number;
  /** Of one address at signing up, signing in and the like, in a minute. */
  readonly authPerMinute: number;
  /** Of one client with one e-mail address at signing in and resetting its password, in fifteen minutes. */
  readonly emailPerQuarter: number;
}

export interface RateLimits {
  /** After a key was recognised: true when the request may go on, else it is answered. */
  admitApiKey(request: FastifyRequest, reply: FastifyReply): Promise<boolean>;
  /** Seconds until this address may try keys again, or null. */
  wrongKeyBlockSeconds(request: FastifyRequest): Promise<number | null>;
  countWrongKey(request: FastifyRequest): Promise<void>;
  /** Guards routes that take no key. Those of the public statistics and records have it by themselves. */
  readonly publicRoutes: onRequestHookHandler;
  /** Guards the routes of signing in, by address. */
  readonly authRoutes: onRequestHookHandler;
  /** Of what is tried with an e-mail address. */
  readonly signIns: SignInLimits;
}

const MINUTE_MS = 60_000;
/** Keys and addresses that are counted at a time, of each kind; the oldest are forgotten beyond it. */
const MAX_COUNTED = 20_000;

/** What anybody may read. They are limited wherever they are added. */
const PUBLIC_ROUTES: ReadonlySet<string> = new Set([
  '/v1/stats',
  '/v1/leaderboard',
  '/v1/network/totals',
  '/v1/providers/attestation',
  '/openapi.json',
]);

/** Adds the limits to a server that has no routes yet. */
export async function createRateLimits(server: FastifyInstance, settings: RateLimitSettings): Promise<RateLimits> {
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
      // Where nobody tried a wrong key within the window, nobody is blocked: most requests are asked no more.
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

/** Written below the framework, so that answers which take the connection over carry them, too. */
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
