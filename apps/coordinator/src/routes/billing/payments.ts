/** `GET /v1/payments/balance` and `GET /v1/payments/usage` (spec: balance, usage entry). Usage has pages, filters and a CSV form. */
import { Readable } from 'node:stream';
import { documentedErrors, RequestError } from '@inference/formats';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import Type from 'typebox';
import type { Ledger, PendingEarnings } from '../../billing/ledger/ledger.js';
import { formatUsd, microUsd } from '../../billing/micro-usd.js';
import type { Database } from '../../database/tables.js';
import { readUsage, type UsageEntryRow, type UsageFilter, type UsagePosition } from '../../database/usage-repository.js';
import { queryErrorExample, queryReader } from '../parameters/query.js';
import { parseTime } from '../parameters/times.js';
import { accountOf } from '../plugins/api-key-auth.js';
import { jsonResponse, KEY_ERRORS, schemaRef } from '../plugins/route-schemas.js';
import { CSV_TYPE, csvLine, prefersCsv } from './csv.js';
import { MAX_USAGE_LIMIT, type UsageEntry, UsageQuerySchema } from './payment-schemas.js';

const PATH = '/v1/payments/usage';
const readUsageQuery = queryReader(UsageQuerySchema);
/** Account data must not be cached. */
const PRIVATE = { 'cache-control': 'no-store' };

export function addPayments(
  server: FastifyInstance,
  parts: { readonly database: Database; readonly ledger: Pick<Ledger, 'balance' | 'pendingEarnings'> },
): void {
  const { database, ledger } = parts;
  const balanceSchema = {
    summary: 'Balance of the account.',
    tags: ['Billing'],
    response: { 200: jsonResponse('Balance'), ...documentedErrors(KEY_ERRORS) },
  };
  server.get('/v1/payments/balance', { schema: balanceSchema, onRequest: server.guards.account }, async (request, reply) => {
    const account = accountOf(request);
    const { balance, withdrawable } = await ledger.balance(account);
    const pending = await ledger.pendingEarnings(account);
    reply.headers(PRIVATE);
    return {
      balance_micro_usd: balance,
      balance_usd: formatUsd(balance),
      withdrawable_micro_usd: withdrawable,
      withdrawable_usd: formatUsd(withdrawable),
      // The balance object of the specification has only the members above.
      ...(pending.total === 0
        ? {}
        : { pending_micro_usd: pending.total, pending_usd: formatUsd(pending.total), maturing: maturingBody(pending) }),
    };
  });
  const usageSchema = {
    summary: 'Jobs of the account with their cost, newest first. CSV with format=csv or Accept: text/csv.',
    tags: ['Billing'],
    querystring: UsageQuerySchema,
    response: {
      200: {
        description: 'The response.',
        content: { 'application/json': { schema: schemaRef('Usage') }, 'text/csv': { schema: Type.String() } },
      },
      ...documentedErrors(['invalid_request', ...KEY_ERRORS], 'OpenAiError', queryErrorExample(UsageQuerySchema, 'limit')),
    },
  };
  server.get(PATH, { schema: usageSchema, onRequest: server.guards.account }, (request, reply) => {
    const query = readUsageRequest(request);
    reply.headers({ ...PRIVATE, vary: 'accept' });
    return query.csv ? sendCsv(database, query, reply) : sendPage(database, query, reply);
  });
}

/** Times at which pending earnings can be withdrawn, with their amounts. */
export function maturingBody({ maturing }: PendingEarnings): { at: string; amount_micro_usd: number }[] {
  return maturing.map(({ at, amount }) => ({ at: new Date(at).toISOString(), amount_micro_usd: amount }));
}

interface UsageQuery {
  readonly filter: UsageFilter;
  readonly after: UsagePosition | null;
  readonly limit: number | undefined;
  readonly csv: boolean;
  /** All parameters, for the URL of the next page. */
  readonly parameters: Readonly<Record<string, string | number>>;
}

function readUsageRequest(request: FastifyRequest): UsageQuery {
  const query = readUsageQuery(request.url);
  const from = parseTime('from', query.from);
  const to = parseTime('to', query.to);
  if (from !== undefined && to !== undefined && from > to) {
    throw new RequestError('invalid_request', 'to', 'to must not be earlier than from.');
  }
  return {
    filter: { accountId: accountOf(request), from, to, model: query.model },
    after: query.cursor === undefined ? null : decodeUsageCursor(query.cursor),
    limit: query.limit,
    csv: query.format === undefined ? prefersCsv(request.headers.accept) : query.format === 'csv',
    parameters: query,
  };
}

async function sendPage(database: Database, query: UsageQuery, reply: FastifyReply): Promise<FastifyReply> {
  const limit = query.limit ?? MAX_USAGE_LIMIT;
  // An extra row means that a next page exists.
  const rows = await readUsage(database, query.filter, { after: query.after, limit: limit + 1 });
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  const next = rows.length > limit && last !== undefined ? encodeUsageCursor(last) : null;
  if (next !== null) {
    const parameters = new URLSearchParams();
    for (const [name, value] of Object.entries({ ...query.parameters, limit, cursor: next })) parameters.set(name, String(value));
    reply.header('link', `<${PATH}?${parameters}>; rel="next"`);
  }
  // Without paging parameters, the response has only the members of the specification.
  const paged = query.limit !== undefined || query.after !== null;
  return reply.send({ usage: shown.map(entryOf), ...(paged ? { next_cursor: next } : {}) });
}

/** Streams entries as CSV, with back-pressure. Sends all entries if the query has no limit. */
async function sendCsv(database: Database, query: UsageQuery, reply: FastifyReply): Promise<FastifyReply> {
  reply.headers({ 'content-type': CSV_TYPE, 'content-disposition': 'attachment; filename="usage.csv"' });
  return reply.send(Readable.from(csvLines(database, query)));
}

async function* csvLines(database: Database, { filter, after, limit = Number.POSITIVE_INFINITY }: UsageQuery): AsyncGenerator<string> {
  yield csvLine(['timestamp', 'request_id', 'model', 'prompt_tokens', 'completion_tokens', 'cost_micro_usd', 'cost_usd', 'images']);
  let position = after;
  for (let left = limit; left > 0; ) {
    const rows = await readUsage(database, filter, { after: position, limit: Math.min(left, MAX_USAGE_LIMIT) });
    if (rows.length > 0) yield rows.map(entryLine).join('');
    position = rows.at(-1) ?? null;
    if (rows.length < MAX_USAGE_LIMIT) return;
    left -= rows.length;
  }
}

function entryOf(row: UsageEntryRow): UsageEntry {
  return {
    request_id: row.jobId,
    model: row.model,
    prompt_tokens: row.promptTokens,
    completion_tokens: row.completionTokens,
    // Jobs without images have only the members of the specification.
    ...(row.images === 0 ? {} : { images: row.images }),
    cost_micro_usd: row.cost,
    timestamp: new Date(row.completedAt).toISOString(),
  };
}

function entryLine(row: UsageEntryRow): string {
  const { timestamp, request_id, model, prompt_tokens, completion_tokens, cost_micro_usd, images = 0 } = entryOf(row);
  const usd = formatUsd(microUsd(cost_micro_usd));
  return csvLine([timestamp, request_id, model, prompt_tokens, completion_tokens, cost_micro_usd, usd, images]);
}

interface UsageCursor {
  /** Milliseconds. */
  readonly completedAt: number;
  readonly jobId: string;
}

const CURSOR = /^([1-9]\d{0,15}|0)_([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})$/;

export function encodeUsageCursor({ completedAt, jobId }: UsageCursor): string {
  return Buffer.from(`${completedAt}_${jobId}`).toString('base64url');
}

/** Inverse of {@link encodeUsageCursor}. Throws RequestError for any other text. */
export function decodeUsageCursor(text: string): UsageCursor {
  const bytes = Buffer.from(text, 'base64url');
  const [, completedAt, jobId] = CURSOR.exec(bytes.toString('latin1')) ?? [];
  // Node.js ignores invalid base64url characters. The cursor is therefore encoded again and compared.
  if (
    completedAt === undefined ||
    jobId === undefined ||
    bytes.toString('base64url') !== text ||
    !Number.isSafeInteger(Number(completedAt))
  ) {
    throw new RequestError('invalid_request', 'cursor', 'cursor must be the next_cursor of an earlier page.');
  }
  return { completedAt: Number(completedAt), jobId };
}
