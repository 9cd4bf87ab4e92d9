/**
 * `rateLimits` is a Fastify plugin with rate limits by API key and address. In a cluster, all coordinators count together.
 *
 * Responses report the limit on requests in the headers of OpenAI or Anthropic.
 */
import { setTimeout } from 'node:timers/promises';
import rateLimit from '@fastify/rate-limit';
import { apiError } from '@inference/formats';
import { BoundedMap } from '@inference/scheduler/bounded-map';
import type { FastifyInstance, FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import type { AttemptCounters } from '../../limits/attempt-counters.js';
import { networkOf } from '../../limits/network-address.js';
import type { NetworkLimits } from '../../limits/network-limits.js';
import { MINUTE_MS } from '../../time-units.js';
import { sendError } from './send-error.js';
import { SignInLimits } from './sign-in-limits.js';

/** 0 disables a limit. An address is an IPv4 address or the /64 network of an IPv6 address. */
interface RateLimitSettings {
  readonly keyPerMinute: number;
  /** Requests per address and minute on routes without a key. */
  readonly addressPerMinute: number;
  readonly badKeysPerMinute: number;
  /** Requests per address and minute on sign-up and sign-in routes. */
  readonly authPerMinute: number;
  /** Sign-in and sign-up attempts per client and e-mail address in fifteen minutes. 0 disables all limits of `signIns`. */
  readonly emailPerQuarterHour: number;
}

interface RateLimitOptions extends RateLimitSettings {
  /** Counters that all coordinators of the cluster share. Null outside a cluster. */
  readonly shared: SharedCounters | null;
}

export interface SharedCounters {
  readonly limits: NetworkLimits;
  readonly attempts: AttemptCounters;
}

export interface RateLimits {
  /** Counts a request with a valid key. If the limit is exceeded, sends the error and returns false. */
  admitApiKey(request: FastifyRequest, reply: FastifyReply): Promise<boolean>;
  /** Seconds for which wrong keys of this address must be refused with 429, or null. Valid keys are still accepted. */
  wrongKeyBlockSeconds(request: FastifyRequest): Promise<number | null>;
  /** Counts a wrong key. Returns the seconds to wait if this key must be refused with 429, or null. */
  countWrongKey(request: FastifyRequest): Promise<number | null>;
  /** Limits routes without a key, by address. {@link PUBLIC_ROUTES} get this hook without naming it. */
  readonly publicRoutes: onRequestHookHandler;
  /** Limits sign-up, sign-in and some OAuth routes, by address. */
  readonly authRoutes: onRequestHookHandler;
  readonly signIns: SignInLimits;
}

/** Maximum number of keys, and of addresses, that are counted at a time. The oldest are evicted. */
const MAX_COUNTED = 20_000;

/** Routes that get the limit by address although they do not name the hook. */
const PUBLIC_ROUTES: ReadonlySet<string> = new Set([
  '/v1/stats',
  '/v1/leaderboard',
  '/v1/network/totals',
  '/v1/network/models',
  '/v1/network/status',
  '/status.atom',
  '/v1/providers/attestation',
  '/openapi.json',
]);

declare module 'fastify' {
  interface FastifyInstance {
    readonly rateLimits: RateLimits;
  }
}

/** Must be registered before the routes. */
export const rateLimits = fastifyPlugin<RateLimitOptions>(async (server, options) => {
  server.decorate('rateLimits', await createRateLimits(server, options));
});

async function createRateLimits(server: FastifyInstance, { shared, ...settings }: RateLimitOptions): Promise<RateLimits> {
  await server.register(rateLimit, { global: false, cache: MAX_COUNTED });
  const limit = (name: string, max: number, keyOf?: (request: FastifyRequest) => string): Limit => {
    if (shared !== null) return sharedLimit(shared.limits, name, max, keyOf ?? (({ ip }) => networkOf(ip)));
    return localLimit(server, max, keyOf);
  };
  const keys = limit('keys', settings.keyPerMinute, (request) => request.apiKey?.id ?? '');
  const publicHook = hookOf(limit('addresses', settings.addressPerMinute), settings.addressPerMinute);
  const authLimit = limit('sign-in addresses', settings.authPerMinute);
  server.addHook('onRoute', (route) => {
    if (PUBLIC_ROUTES.has(route.url)) route.onRequest = [publicHook, ...[route.onRequest ?? []].flat()];
  });

  return {
    admitApiKey: async (request, reply) => settings.keyPerMinute === 0 || admitOrReply(keys, request, reply),
    ...(shared === null ? localWrongKeys(server, settings.badKeysPerMinute) : sharedWrongKeys(shared.attempts, settings.badKeysPerMinute)),
    publicRoutes: publicHook,
    authRoutes: hookOf(authLimit, settings.authPerMinute),
    signIns: new SignInLimits({
      maxPerQuarterHour: settings.emailPerQuarterHour,
      now: Date.now,
      attempts: shared?.attempts,
      pause: (ms, signal) => setTimeout(ms, undefined, { signal }),
    }),
  };
}

type Limit = (request: FastifyRequest) => LimitState | Promise<LimitState>;

/** Members as `@fastify/rate-limit` reports them. */
type LimitState =
  | { readonly isExempt: true }
  | {
      readonly isExempt: false;
      readonly isExceeded: boolean;
      readonly max: number;
      readonly remaining: number;
      /** Milliseconds until the window ends. */
      readonly ttl: number;
      readonly ttlInSeconds: number;
    };

function localLimit(server: FastifyInstance, max: number, keyOf: ((request: FastifyRequest) => string) | undefined): Limit {
  const count = server.createRateLimit({ max, timeWindow: MINUTE_MS, ...(keyOf === undefined ? {} : { keyGenerator: keyOf }) });
  return async (request) => {
    const state = await count(request);
    // `isAllowed` of @fastify/rate-limit: the request is on the allow list.
    return state.isAllowed ? { isExempt: true } : { isExempt: false, ...state };
  };
}

function sharedLimit(limits: NetworkLimits, name: string, max: number, keyOf: (request: FastifyRequest) => string): Limit {
  const limit = limits.define(name, { max, windowMs: MINUTE_MS });
  return async (request) => {
    const permit = limit.take(keyOf(request));
    const { isAdmitted, remaining, resetMs } = permit instanceof Promise ? await permit : permit;
    return { isExempt: false, isExceeded: !isAdmitted, max, remaining, ttl: resetMs, ttlInSeconds: Math.ceil(resetMs / 1000) };
  };
}

type WrongKeys = Pick<RateLimits, 'wrongKeyBlockSeconds' | 'countWrongKey'>;

function localWrongKeys(server: FastifyInstance, max: number): WrongKeys {
  const wrongKeys = server.createRateLimit({ max, timeWindow: MINUTE_MS });
  let lookUpUntil = 0;
  return {
    async wrongKeyBlockSeconds(request) {
      // No address is blocked a while after the last wrong key, so most requests skip the lookup.
      if (max === 0 || performance.now() > lookUpUntil) return null;
      const state = await wrongKeys(request, { increment: false });
      return !state.isAllowed && state.remaining === 0 ? state.ttlInSeconds : null;
    },
    async countWrongKey(request) {
      if (max === 0) return null;
      lookUpUntil = performance.now() + 2 * MINUTE_MS;
      await wrongKeys(request);
      return null;
    },
  };
}

/** Counts the wrong keys of the cluster. This coordinator blocks an address after the first wrong key that it counts over the limit. */
function sharedWrongKeys(attempts: AttemptCounters, max: number): WrongKeys {
  const counter = attempts.counter('wrong keys', { maxAttempts: max, windowMs: MINUTE_MS });
  const blockedUntilByAddress = new BoundedMap<string, number>(MAX_COUNTED);
  return {
    async wrongKeyBlockSeconds({ ip }) {
      if (blockedUntilByAddress.size === 0) return null;
      const leftMs = (blockedUntilByAddress.get(networkOf(ip)) ?? 0) - performance.now();
      return leftMs > 0 ? Math.ceil(leftMs / 1000) : null;
    },
    async countWrongKey({ ip }) {
      if (max === 0) return null;
      const address = networkOf(ip);
      const retryAfter = await counter.count(address);
      if (retryAfter !== null) blockedUntilByAddress.set(address, performance.now() + 1000 * retryAfter);
      return retryAfter;
    },
  };
}

function hookOf(limit: Limit, max: number): onRequestHookHandler {
  return async (request, reply) => {
    if (max !== 0 && !(await admitOrReply(limit, request, reply))) return reply;
  };
}

async function admitOrReply(limit: Limit, request: FastifyRequest, reply: FastifyReply): Promise<boolean> {
  const state = await limit(request);
  if (state.isExempt) return true;
  setLimitHeaders(request, reply, state);
  if (!state.isExceeded) return true;
  sendError(reply, apiError('rate_limit_exceeded', { retryAfter: state.ttlInSeconds }));
  return false;
}

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
  reply.headers(headers);
}

function isMessagesPath(request: FastifyRequest): boolean {
  return /^\/v1\/messages(?:[/?]|$)/.test(request.url);
}
