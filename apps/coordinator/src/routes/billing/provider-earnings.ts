/**
 * `GET /v1/machine/earnings`: earnings of a linked provider per day, in the time zone of the request.
 *
 * The machine token, which the agent got when its owner signed in, authenticates the request. Unlike the session token, it works while the
 * provider is disconnected.
 */
import { apiError, documentedErrors, RequestError } from '@inference/formats';
import { MAX_EARNING_DAYS, type MachineEarnings, type ProviderId } from '@inference/protocol';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import Type from 'typebox';
import type { Ledger } from '../../billing/ledger/ledger.js';
import { isOwnedBy, nameOfAccount } from '../../database/accounts/account-repository.js';
import { accountEarnings, type EarningsQuarter, providerQuarters } from '../../database/earnings-repository.js';
import { QUARTER_MS } from '../../database/ledger/activity.js';
import { readMachineToken } from '../../database/providers/machine-token-repository.js';
import type { Database } from '../../database/tables.js';
import { DAY_MS } from '../../time-units.js';
import { parseQueryInteger } from '../parameters/query.js';
import { presentedKey } from '../plugins/api-key-auth.js';
import { jsonResponse } from '../plugins/route-schemas.js';
import { sendError } from '../plugins/send-error.js';
import { maturingBody } from './payments.js';

interface ProviderEarningsRoutes {
  readonly database: Database;
  readonly ledger: Pick<Ledger, 'balance' | 'pendingEarnings'>;
  readonly now: () => number;
}

const NO_TOKEN = 'The machine token is missing. Send the token from the sign-in as "Authorization: Bearer <token>".';
const VOID_TOKEN = 'The machine token is not valid, for example because the machine was unlinked. Sign in again.';
const NOT_LINKED = 'The machine is not linked yet: the link is made when the provider connects. Start the provider.';
const TOKEN_ERRORS = {
  invalid_request: { message: `days must be a whole number from 1 to ${MAX_EARNING_DAYS}.`, param: 'days' },
  missing_api_key: { message: NO_TOKEN },
  invalid_api_key: { message: VOID_TOKEN },
  conflict: { message: NOT_LINKED },
} as const;
const EARNINGS_ERRORS = [
  'invalid_request',
  'missing_api_key',
  'invalid_api_key',
  'account_suspended',
  'conflict',
  'rate_limit_exceeded',
] as const;
const DEFAULT_DAYS = 7;

const EarningsQuerySchema = Type.Object({
  days: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: MAX_EARNING_DAYS,
      description: `Number of days to return, including today. Default ${DEFAULT_DAYS}.`,
    }),
  ),
  time_zone: Type.Optional(Type.String({ description: 'IANA time zone of the days, such as Europe/Berlin. Default UTC.' })),
});

interface LinkedProvider {
  readonly providerId: ProviderId;
  readonly accountId: string;
}

export function addProviderEarnings(server: FastifyInstance, routes: ProviderEarningsRoutes): void {
  const { database, ledger, now } = routes;
  const schema = {
    summary: 'Earnings of a provider for the account that it is linked to. The bearer token is the machine token, not an API key.',
    tags: ['Providers'],
    querystring: EarningsQuerySchema,
    response: { 200: jsonResponse('MachineEarnings'), ...documentedErrors(EARNINGS_ERRORS, 'OpenAiError', TOKEN_ERRORS) },
  };
  server.get('/v1/machine/earnings', { schema, onRequest: server.rateLimits.publicRoutes }, async (request, reply) => {
    const linked = await linkedProviderOf(routes, request, reply);
    if (linked === null) return reply;
    const { providerId, accountId } = linked;
    const { days, timeZone } = readEarningsQuery(request.query as Record<string, string | undefined>);
    const dayOf = localDayFormatter(timeZone);
    const to = dayOf(now());
    const from = firstDay(to, days);
    // In every time zone, a day starts less than 24 hours before the UTC day of the same date.
    const since = Date.parse(`${from}T00:00:00Z`) - DAY_MS;
    const [quarters, { providers, total }, { withdrawable }, pending, name] = await Promise.all([
      providerQuarters(database, { providerId, accountId, from: since }),
      accountEarnings(database, accountId),
      ledger.balance(accountId),
      ledger.pendingEarnings(accountId),
      nameOfAccount(database, accountId),
    ]);
    const answer: MachineEarnings = {
      object: 'machine.earnings',
      provider_id: providerId,
      account_name: name,
      time_zone: timeZone,
      from,
      to,
      data: earningsByDay(quarters, dayOf, from, to),
      account: {
        machines: providers,
        earned_total_micro_usd: total,
        withdrawable_micro_usd: withdrawable,
        ...(pending.total === 0 ? {} : { pending_micro_usd: pending.total, maturing: maturingBody(pending) }),
      },
      server_time: new Date(now()).toISOString(),
    };
    return reply.header('cache-control', 'no-store').send(answer);
  });
}

/** Provider of the request's machine token. Returns null after sending an error. */
async function linkedProviderOf(
  { database }: ProviderEarningsRoutes,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<LinkedProvider | null> {
  const refuse = (...error: Parameters<typeof apiError>): null => {
    sendError(reply, apiError(...error));
    return null;
  };
  const token = presentedKey(request);
  if (token === null) return refuse('missing_api_key', { message: NO_TOKEN });
  const blockedFor = await request.server.rateLimits.wrongKeyBlockSeconds(request);
  if (blockedFor !== null) return refuse('rate_limit_exceeded', { retryAfter: blockedFor });
  const state = await readMachineToken(database, token);
  if (state.kind === 'suspended') return refuse('account_suspended');
  if (state.kind === 'void') {
    await request.server.rateLimits.countWrongKey(request);
    return refuse('invalid_api_key', { message: VOID_TOKEN });
  }
  const { providerId, accountId } = state;
  if (providerId === null) return refuse('conflict', { message: NOT_LINKED });
  if (!(await isOwnedBy(database, providerId, accountId))) return refuse('invalid_api_key', { message: VOID_TOKEN });
  return { providerId: providerId as ProviderId, accountId };
}

function readEarningsQuery(query: Readonly<Record<string, string | undefined>>): { readonly days: number; readonly timeZone: string } {
  const days = query.days === undefined ? DEFAULT_DAYS : parseQueryInteger(query.days);
  if (days === null || days < 1 || days > MAX_EARNING_DAYS) {
    throw new RequestError('invalid_request', 'days', `days must be a whole number from 1 to ${MAX_EARNING_DAYS}.`);
  }
  const timeZone = query.time_zone ?? 'UTC';
  if (timeZone.length > 64 || !isTimeZone(timeZone)) {
    throw new RequestError('invalid_request', 'time_zone', 'time_zone must be the name of a time zone such as Europe/Berlin.');
  }
  return { days, timeZone };
}

/** Sums quarters of an hour, in ascending order, by day and model. */
function earningsByDay(
  quarters: readonly EarningsQuarter[],
  dayOf: (ms: number) => string,
  from: string,
  to: string,
): MachineEarnings['data'] {
  const rowByDayAndModel = new Map<string, MachineEarnings['data'][number]>();
  let quarter = -1;
  let day = '';
  for (const counts of quarters) {
    // Formatting is slow.
    if (counts.quarter !== quarter) day = dayOf(counts.quarter * QUARTER_MS);
    quarter = counts.quarter;
    if (day < from || day > to) continue;
    const key = JSON.stringify([day, counts.model]);
    const row = rowByDayAndModel.get(key) ?? {
      day,
      model: counts.model,
      requests: 0,
      prompt_tokens: 0,
      completion_tokens: 0,
      images: 0,
      earned_micro_usd: 0,
    };
    row.requests += counts.jobs;
    row.prompt_tokens += counts.prompt_tokens;
    row.completion_tokens += counts.completion_tokens;
    row.images += counts.images;
    row.earned_micro_usd += counts.earned;
    rowByDayAndModel.set(key, row);
  }
  return [...rowByDayAndModel.values()].sort((a, b) => (a.day < b.day ? -1 : a.day > b.day ? 1 : b.earned_micro_usd - a.earned_micro_usd));
}

export function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en-CA', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

/** Returns a function that converts milliseconds to a local day such as `2026-01-31`. */
function localDayFormatter(timeZone: string): (ms: number) => string {
  const format = new Intl.DateTimeFormat('en-CA', { timeZone, year: 'numeric', month: '2-digit', day: '2-digit' });
  return (ms) => format.format(ms);
}

/** First day of a range of `days` that ends today. Counts calendar days, because a local day may have 23 or 25 hours. */
export function firstDay(today: string, days: number): string {
  return new Date(Date.parse(`${today}T00:00:00Z`) - (days - 1) * DAY_MS).toISOString().slice(0, 10);
}
