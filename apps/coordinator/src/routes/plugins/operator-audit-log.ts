/**
 * Audit log of operators: records each mutation of the admin API, and some reads, before the handler runs, and the outcome afterwards. Also
 * lists and exports the log.
 */
import { type AdminAction, type AdminActionPage, AdminActionPageSchema, apiError } from '@inference/formats';
import type { FastifyInstance, FastifyRequest, onSendAsyncHookHandler, preHandlerAsyncHookHandler } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import type { OperatorAction, OperatorAuditLog } from '../../database/accounts/operator-audit-log.js';
import { readPageQuery, readTextFilter, toPage } from '../parameters/pagination.js';
import { isoTime, readTimeSpan } from '../parameters/times.js';
import { allPages, downloadSchema, LOG_TYPES, logDownload, sendDownload } from './downloads.js';
import { operatorOf } from './guards.js';
import { bytesOf } from './request-bodies.js';
import { sendError } from './send-error.js';

const ADMIN = '/admin/v1/';
const READ_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Whether the audit log also records reads of this route, such as an export of personal data. */
    readonly isAudited?: boolean;
  }
}

interface AuditLogOptions {
  readonly auditLog: OperatorAuditLog;
  readonly onFailure: (error: unknown) => void;
}

/** Records mutations, and reads with `isAudited`, on every admin route registered after this plugin. */
export const operatorAuditLog = fastifyPlugin<AuditLogOptions>(async (server, { auditLog, onFailure }) => {
  const entryIdByRequest = new WeakMap<FastifyRequest, string>();

  const begin: preHandlerAsyncHookHandler = async (request, reply) => {
    const action = `${request.method} ${request.routeOptions.url ?? ''}`;
    try {
      const row = { operator: operatorOf(request), action, subject: subjectOf(request), details: detailsOf(request) };
      entryIdByRequest.set(request, await auditLog.begin(row));
    } catch (error) {
      onFailure(error);
      sendError(reply, apiError('internal', { message: 'Nothing was done, because the action could not be written to the audit log.' }));
      return reply;
    }
  };

  const end: onSendAsyncHookHandler = async (request, reply, payload) => {
    const id = entryIdByRequest.get(request);
    if (id === undefined) return payload;
    entryIdByRequest.delete(request);
    try {
      await auditLog.end(id, reply.statusCode < 400 ? 'done' : errorCode(payload, reply.statusCode));
    } catch (error) {
      onFailure(error);
    }
    return payload;
  };

  server.addHook('onRoute', (route) => {
    if (!route.url.startsWith(ADMIN)) return;
    if (route.config?.isAudited !== true && [route.method].flat().every((method) => READ_METHODS.has(method))) return;
    route.preHandler = [...[route.preHandler ?? []].flat(), begin];
    route.onSend = [...[route.onSend ?? []].flat(), end];
  });
});

interface AuditLogRoutes {
  readonly auditLog: OperatorAuditLog;
  /** Names of operators, by `account:<id>` and `key:<id>`. */
  readonly namesOf: NamesOf;
}

type NamesOf = (operators: readonly string[]) => Promise<ReadonlyMap<string, string>>;

export function addAuditLogRoutes(server: FastifyInstance, { auditLog, namesOf }: AuditLogRoutes): void {
  server.get(
    '/admin/v1/actions',
    { onRequest: server.guards.admin, schema: { response: { 200: AdminActionPageSchema } } },
    async (request): Promise<AdminActionPage> => {
      const query = request.query as Readonly<Record<string, string | undefined>>;
      const { limit, after } = readPageQuery(query);
      const rows = await auditLog.list({ subject: readTextFilter(query, 'subject'), limit: limit + 1, after });
      const names = await namesOf([...new Set(rows.map(({ operator }) => operator))]);
      return toPage(
        rows,
        limit,
        ({ at, id }) => ({ at, id }),
        (row) => actionBody(row, names),
      );
    },
  );
  const exportRoute = { onRequest: server.guards.admin, schema: downloadSchema(LOG_TYPES), config: { isAudited: true } };
  server.get('/admin/v1/actions/export', exportRoute, async (request, reply) => {
    const query = request.query as Readonly<Record<string, string | undefined>>;
    const span = readTimeSpan(query);
    const subject = readTextFilter(query, 'subject');
    const pages = allPages((limit, after) => auditLog.list({ subject, span, limit, after }));
    const csv = { columns: ACTION_COLUMNS, fields: actionFields };
    return sendDownload(reply, logDownload('audit-log', query.format, actionBodies(pages, namesOf), csv));
  });
}

async function* actionBodies(pages: AsyncIterable<readonly OperatorAction[]>, namesOf: NamesOf): AsyncGenerator<AdminAction[]> {
  for await (const page of pages) {
    const names = await namesOf([...new Set(page.map(({ operator }) => operator))]);
    yield page.map((row) => actionBody(row, names));
  }
}

const ACTION_COLUMNS = ['at', 'operator', 'operator_name', 'action', 'subject', 'outcome', 'details', 'id'] as const;

function actionFields({ at, operator, operator_name, action, subject, outcome, details, id }: AdminAction): (string | null)[] {
  return [at, operator, operator_name, action, subject, outcome, details === null ? null : JSON.stringify(details), id];
}

/** Id in the path, if any. Routes for models have a wildcard instead of `:id`. */
function subjectOf(request: FastifyRequest): string | null {
  const params = request.params as Readonly<Record<string, string | undefined>>;
  return params.id ?? params['*'] ?? null;
}

/** The body as normalized JSON, or the query parameters of a read. Null for a body that is not JSON. */
function detailsOf(request: FastifyRequest): string | null {
  if (READ_METHODS.has(request.method)) return JSON.stringify(request.query);
  const text = Buffer.from(bytesOf(request)).toString('utf8');
  try {
    return JSON.stringify(JSON.parse(text));
  } catch {
    return null;
  }
}

function errorCode(payload: unknown, status: number): string {
  try {
    const { error } = JSON.parse(String(payload)) as { error?: { code?: unknown } };
    if (typeof error?.code === 'string') return error.code;
  } catch {
    // A body in another format has no code. The status is recorded instead.
  }
  return String(status);
}

function actionBody(row: OperatorAction, names: ReadonlyMap<string, string>): AdminAction {
  return {
    id: row.id,
    at: isoTime(row.at),
    operator: row.operator,
    operator_name: names.get(row.operator) ?? null,
    action: row.action,
    subject: row.subject,
    details: row.details === null ? null : (JSON.parse(row.details) as unknown),
    outcome: row.outcome,
  };
}
