/** Routes under `/console/v1`: lists of completed requests (`/usage`) and failed requests (`/usage/failed`), and one request by id. */
import {
  type ConsoleFailedRequest,
  ConsoleFailedRequestPageSchema,
  ConsoleRequestSchema,
  type ConsoleUsageEntry,
  ConsoleUsagePageSchema,
  ERRORS,
  RequestError,
  USAGE_SORTS,
} from '@inference/formats';
import type { FailedRequestRepository, ListedFailure } from '../../database/failed-request-repository.js';
import {
  findSettledJob,
  listSettledJobs,
  positionOf,
  type RequestFilter,
  type SettledJob,
} from '../../database/request-list-repository.js';
import type { Database } from '../../database/tables.js';
import { findJobId } from '../../inference/request/job-id.js';
import { readPageQuery, readTextFilter, toPage } from '../parameters/pagination.js';
import { readSortedPage, toSortedPage } from '../parameters/sorted-pages.js';
import { isoTime, readDayRange } from '../parameters/times.js';
import type { ConsoleApi, ConsoleCall } from '../plugins/console-api.js';

interface RequestRoutes {
  readonly database: Database;
  readonly failedRequests: FailedRequestRepository;
  readonly now: () => number;
}

export function addRequestRoutes(api: ConsoleApi, { database, failedRequests, now }: RequestRoutes): void {
  api.add({ method: 'GET', path: '/usage', response: ConsoleUsagePageSchema }, async (call) => {
    const page = readSortedPage(call.query, USAGE_SORTS);
    const jobs = await listSettledJobs(database, readRequestFilter(call, now()), page, { limit: page.limit + 1, after: page.after });
    return toSortedPage(jobs, page, (job) => positionOf(job, page.sort), entryOf);
  });

  api.add({ method: 'GET', path: '/usage/failed', response: ConsoleFailedRequestPageSchema }, async (call) => {
    const { limit, after } = readPageQuery(call.query);
    const requests = await failedRequests.list(readRequestFilter(call, now()), { limit: limit + 1, after });
    return toPage(requests, limit, ({ failedAt, jobId }) => ({ at: failedAt, id: jobId }), failureOf);
  });

  api.add({ method: 'GET', path: '/usage/requests/:request_id', response: ConsoleRequestSchema }, async ({ caller, params }) => {
    const accountId = caller.account.id;
    const id = findJobId(params.request_id ?? '');
    if (id === null) throw requestNotFound();
    const job = await findSettledJob(database, accountId, id);
    if (job !== null) {
      return { state: 'completed' as const, ...entryOf(job), cached_tokens: job.cachedTokens, hidden_tokens: job.hiddenTokens };
    }
    const failure = await failedRequests.find(accountId, id);
    if (failure !== null) return { state: 'failed' as const, ...failureOf(failure) };
    throw requestNotFound();
  });
}

function requestNotFound(): RequestError {
  return new RequestError('not_found', 'request_id', 'This account has no finished request with this id.');
}

/** Filter from the query parameters `from`, `to`, `model` and `key`. Throws RequestError. */
export function readRequestFilter({ caller, query }: Pick<ConsoleCall<unknown>, 'caller' | 'query'>, now: number): RequestFilter {
  return {
    accountId: caller.account.id,
    range: readDayRange(query, now),
    model: readTextFilter(query, 'model'),
    key: readTextFilter(query, 'key'),
  };
}

export function entryOf(job: SettledJob): ConsoleUsageEntry {
  return {
    request_id: job.jobId,
    completed_at: isoTime(job.endedAt),
    model: job.model,
    endpoint: job.endpoint,
    key: { id: job.keyId, name: job.keyName },
    provider_id: job.providerId,
    prompt_tokens: job.promptTokens,
    completion_tokens: job.completionTokens,
    images: job.images,
    cost_micro_usd: job.cost,
    latency_ms: Math.max(0, job.endedAt - job.reservedAt),
  };
}

function failureOf(request: ListedFailure): ConsoleFailedRequest {
  return {
    request_id: request.jobId,
    failed_at: isoTime(request.failedAt),
    model: request.model,
    endpoint: request.endpoint,
    key: { id: request.keyId, name: request.keyName },
    provider_id: request.providerId,
    end_to_end: request.isSealed,
    latency_ms: request.latencyMs,
    error: errorOf(request.code),
  };
}

function errorOf(code: string): ConsoleFailedRequest['error'] {
  const row = Object.hasOwn(ERRORS, code) ? ERRORS[code as keyof typeof ERRORS] : null;
  if (row === null) return { code, status: 500, message: 'An error of another version of the coordinator.' };
  return { code: row.code, status: row.status, message: row.message };
}
