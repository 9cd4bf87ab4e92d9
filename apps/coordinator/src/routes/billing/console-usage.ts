/** `/console/v1/usage`: usage of the signed-in account by day, by job, and as CSV. */
import { ConsoleUsageDaysSchema, type ConsoleUsageEntry, ConsoleUsagePageSchema } from '@inference/formats';
import { formatUsd, microUsd } from '../../billing/micro-usd.js';
import type { Database } from '../../database/tables.js';
import { listUsage, type UsedJob, type UsedJobFilter, usageDays } from '../../database/usage-repository.js';
import { readPageQuery, readTextFilter, toPage } from '../parameters/pagination.js';
import { dayText, isoTime, readDayRange } from '../parameters/times.js';
import type { ConsoleApi, ConsoleCall } from '../plugins/console-api.js';
import { CSV_TYPE, csvLine } from './csv.js';

interface UsageRoutes {
  readonly database: Database;
  readonly now: () => number;
}

/** Rows per database read of the CSV download. */
const FILE_PAGE = 500;

export function addUsageRoutes(api: ConsoleApi, { database, now }: UsageRoutes): void {
  const filterOf = ({ caller, query }: Pick<ConsoleCall<unknown>, 'caller' | 'query'>): UsedJobFilter => ({
    accountId: caller.account.id,
    range: readDayRange(query, now()),
    model: readTextFilter(query, 'model'),
    key: readTextFilter(query, 'key'),
  });

  api.add({ method: 'GET', path: '/usage/days', response: ConsoleUsageDaysSchema }, async (call) => {
    const { accountId, range, ...only } = filterOf(call);
    const rows = await usageDays(database, accountId, range, only);
    return {
      from: dayText(range.from),
      to: dayText(range.to),
      data: rows.map((row) => ({
        day: dayText(row.day),
        model: row.model,
        requests: row.requests,
        prompt_tokens: row.promptTokens,
        completion_tokens: row.completionTokens,
        images: row.images,
        cost_micro_usd: row.cost,
      })),
    };
  });

  api.add({ method: 'GET', path: '/usage', response: ConsoleUsagePageSchema }, async (call) => {
    const { limit, after } = readPageQuery(call.query);
    const jobs = await listUsage(database, filterOf(call), { limit: limit + 1, after });
    return toPage(jobs, limit, markOf, entryOf);
  });

  api.addDownload({ path: '/usage.csv', name: 'usage.csv', type: CSV_TYPE }, (call) => csvLines(database, filterOf(call)));
}

async function* csvLines(database: Database, filter: UsedJobFilter): AsyncGenerator<string> {
  yield csvLine(COLUMNS);
  for (let after: { at: number; id: string } | null = null; ; ) {
    const jobs = await listUsage(database, filter, { limit: FILE_PAGE, after });
    if (jobs.length > 0) yield jobs.map(lineOf).join('');
    const last = jobs.at(-1);
    if (jobs.length < FILE_PAGE || last === undefined) return;
    after = markOf(last);
  }
}

const COLUMNS = [
  'completed_at',
  'request_id',
  'model',
  'endpoint',
  'key',
  'provider_id',
  'prompt_tokens',
  'completion_tokens',
  'images',
  'cost_micro_usd',
  'cost_usd',
];

function lineOf(job: UsedJob): string {
  const entry = entryOf(job);
  return csvLine([
    entry.completed_at,
    entry.request_id,
    entry.model,
    entry.endpoint,
    entry.key.name ?? '',
    entry.provider_id ?? '',
    entry.prompt_tokens,
    entry.completion_tokens,
    entry.images,
    entry.cost_micro_usd,
    formatUsd(microUsd(entry.cost_micro_usd)),
  ]);
}

function entryOf(job: UsedJob): ConsoleUsageEntry {
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
  };
}

function markOf(job: UsedJob): { readonly at: number; readonly id: string } {
  return { at: job.endedAt, id: job.jobId };
}
