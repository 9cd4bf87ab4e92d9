/** Routes under `/console/v1`: usage of an account by day (`/usage/days`), by hour (`/usage/hours`) and as a file (`/usage.csv`). */
import { ConsoleUsageDaysSchema, ConsoleUsageHoursSchema, RequestError } from '@inference/formats';
import { formatUsd, microUsd } from '../../billing/micro-usd.js';
import {
  listSettledJobs,
  positionOf,
  type RequestFilter,
  type SettledJob,
  type SortPosition,
} from '../../database/request-list-repository.js';
import type { Database } from '../../database/tables.js';
import { type ModelUsage, usageDays, usageHours } from '../../database/usage-repository.js';
import { HOUR_MS } from '../../time-units.js';
import { dayText, isoTime } from '../parameters/times.js';
import type { ConsoleApi } from '../plugins/console-api.js';
import { entryOf, readRequestFilter } from './console-requests.js';
import { CSV_TYPE, csvLine } from './csv.js';

interface UsageRoutes {
  readonly database: Database;
  readonly now: () => number;
}

const MAX_DAYS_BY_HOUR = 31;
const ROWS_PER_READ = 500;

export function addUsageRoutes(api: ConsoleApi, { database, now }: UsageRoutes): void {
  api.add({ method: 'GET', path: '/usage/days', response: ConsoleUsageDaysSchema }, async (call) => {
    const { accountId, range, ...only } = readRequestFilter(call, now());
    const rows = await usageDays(database, accountId, range, only);
    return { from: dayText(range.from), to: dayText(range.to), data: rows.map((row) => ({ day: dayText(row.day), ...usageBody(row) })) };
  });

  api.add({ method: 'GET', path: '/usage/hours', response: ConsoleUsageHoursSchema }, async (call) => {
    const { accountId, range, ...only } = readRequestFilter(call, now());
    if (range.to - range.from >= MAX_DAYS_BY_HOUR) {
      throw new RequestError('invalid_request', 'from', `from and to must cover at most ${MAX_DAYS_BY_HOUR} days for hours.`);
    }
    const rows = await usageHours(database, accountId, range, only);
    return { data: rows.map((row) => ({ hour: isoTime(row.hour * HOUR_MS), ...usageBody(row) })) };
  });

  api.addDownload({ path: '/usage.csv', types: [CSV_TYPE] }, (call) => ({
    name: 'usage.csv',
    type: CSV_TYPE,
    parts: csvLines(database, readRequestFilter(call, now())),
  }));
}

function usageBody({ model, requests, promptTokens, completionTokens, images, cost }: ModelUsage) {
  return { model, requests, prompt_tokens: promptTokens, completion_tokens: completionTokens, images, cost_micro_usd: cost };
}

async function* csvLines(database: Database, filter: RequestFilter): AsyncGenerator<string> {
  yield csvLine(COLUMNS);
  for (let after: SortPosition | null = null; ; ) {
    const jobs = await listSettledJobs(database, filter, { sort: 'time', order: 'desc' }, { limit: ROWS_PER_READ, after });
    if (jobs.length > 0) yield jobs.map(lineOf).join('');
    const last = jobs.at(-1);
    if (jobs.length < ROWS_PER_READ || last === undefined) return;
    after = positionOf(last, 'time');
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

function lineOf(job: SettledJob): string {
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
