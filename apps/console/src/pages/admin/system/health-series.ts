/** `healthCharts`: converts the health history to charts. Intervals without figures are gaps and not zeros. */
import type { AdminHealthHistory, AdminHealthPoint } from '@inference/formats';
import { humanizeCode } from '../../../features/machines/status-texts.js';
import { formatDuration, formatShort, formatUsd } from '../../../ui/display/figures.js';

export interface HealthChart {
  readonly title: string;
  readonly kind: 'line' | 'bar';
  readonly isStacked: boolean;
  readonly format: (value: number) => string;
  /** `colour`: number of a chart colour. Absent: by position. */
  readonly series: readonly { readonly label: string; readonly values: readonly (number | null)[]; readonly colour?: number }[];
}

/** Maximum error codes with their own series. Further codes share a series. */
const MAX_CODES = 5;
const OTHER_ERRORS = 'Other errors';

/** Colour numbers by label of the series. */
const REQUEST_COLOURS: Readonly<Record<string, number>> = { Delivered: 1, Failed: 3, Refused: 4, Cancelled: 2 };

function colourOf(label: string): { readonly colour?: number } {
  const colour = REQUEST_COLOURS[label];
  return colour === undefined ? {} : { colour };
}

const LEVELS: Readonly<Record<string, string>> = { hardware: 'Hardware', self_signed: 'Self-signed', none: 'No trust level' };

export function hasData({ data }: AdminHealthHistory): boolean {
  return data.some(({ coordinators }) => coordinators > 0);
}

/** Labels of the time axis: start of each interval in the browser's time zone, or in `timeZone`. */
export function timeLabels({ range, data }: AdminHealthHistory, timeZone?: string): string[] {
  const format = new Intl.DateTimeFormat('en', {
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
    ...(range === '7d' ? { month: 'short', day: 'numeric' } : {}),
    ...(timeZone === undefined ? {} : { timeZone }),
  });
  return data.map(({ at }) => format.format(new Date(at)));
}

export function healthCharts({ data }: AdminHealthHistory): readonly HealthChart[] {
  const values = (read: (point: AdminHealthPoint) => number | null): (number | null)[] =>
    data.map((point) => (point.coordinators === 0 ? null : read(point)));
  const chart = (
    title: string,
    series: Readonly<Record<string, (point: AdminHealthPoint) => number | null>>,
    options: Partial<Pick<HealthChart, 'kind' | 'isStacked' | 'format'>> = {},
  ): HealthChart => ({
    title,
    kind: 'line',
    isStacked: false,
    format: formatShort,
    ...options,
    series: Object.entries(series).map(([label, read]) => ({ label, values: values(read), ...colourOf(label) })),
  });
  const bars = { kind: 'bar', isStacked: true } as const;
  return [
    chart(
      'Requests',
      {
        Delivered: ({ requests }) => requests.delivered,
        Failed: ({ requests }) => requests.failed,
        Refused: ({ requests }) => requests.refused,
        Cancelled: ({ requests }) => requests.cancelled,
      },
      bars,
    ),
    chart('Failures by reason', failuresByCode(data), bars),
    chart(
      'Latency',
      {
        Median: ({ latency_ms }) => latency_ms?.p50 ?? null,
        '95th percentile': ({ latency_ms }) => latency_ms?.p95 ?? null,
        'First token, median': ({ first_token_ms }) => first_token_ms?.p50 ?? null,
        'First token, 95th percentile': ({ first_token_ms }) => first_token_ms?.p95 ?? null,
      },
      { format: formatDuration },
    ),
    chart('Queue', {
      'Waiting, highest': ({ queue }) => queue.max,
      'Waiting, average': ({ queue }) => queue.average,
      'Running jobs, average': ({ running_jobs }) => running_jobs,
    }),
    chart('Machines', { ...machinesByLevel(data), Eligible: ({ routable }) => routable }),
    chart('Slots', { All: ({ slots }) => slots, 'In use': ({ used_slots }) => used_slots }),
    chart('Event loop lag', { Longest: ({ event_loop_lag_ms }) => event_loop_lag_ms }, { format: formatDuration }),
    chart(
      'Ledger',
      {
        Reserved: ({ ledger }) => ledger?.reserved_micro_usd ?? null,
        'Network fees': ({ ledger }) => ledger?.fees_micro_usd ?? null,
        'Requested withdrawals': ({ ledger }) => ledger?.requested_withdrawals_micro_usd ?? null,
      },
      // Axis ticks may lie between two micro-USD.
      { format: (value) => formatUsd(Math.round(value)) },
    ),
  ];
}

/** Key: label of a series. Value: reads the series' value from a point of the history. */
type Readers = Record<string, (point: AdminHealthPoint) => number>;

/** A series for each frequent error code, and a last series for all other codes. */
function failuresByCode(data: readonly AdminHealthPoint[]): Readers {
  const totals = new Map<string, number>();
  for (const { code, count } of data.flatMap(({ failures }) => failures)) totals.set(code, (totals.get(code) ?? 0) + count);
  const codes = [...totals].sort(([, a], [, b]) => b - a).map(([code]) => code);
  const shown = codes.slice(0, MAX_CODES);
  const countOf = (point: AdminHealthPoint, isCounted: (code: string) => boolean): number =>
    point.failures.reduce((sum, { code, count }) => sum + (isCounted(code) ? count : 0), 0);
  return {
    ...Object.fromEntries(
      shown.map((shownCode) => [humanizeCode(shownCode), (point: AdminHealthPoint) => countOf(point, (code) => code === shownCode)]),
    ),
    ...(codes.length > MAX_CODES ? { [OTHER_ERRORS]: (point) => countOf(point, (code) => !shown.includes(code)) } : {}),
  };
}

function machinesByLevel(data: readonly AdminHealthPoint[]): Readers {
  const levels = [...new Set(data.flatMap(({ providers }) => providers.map(({ trust_level }) => trust_level)))].sort();
  return Object.fromEntries(
    levels.map((level) => [
      LEVELS[level] ?? humanizeCode(level),
      ({ providers }: AdminHealthPoint) => providers.find(({ trust_level }) => trust_level === level)?.average ?? 0,
    ]),
  );
}
