/** Filters of the usage page, stored in its URL so that a view can be linked. */

export interface UsageFilter {
  /** Days (UTC), both included. */
  readonly from: string;
  readonly to: string;
  /** Null: all models. */
  readonly model: string | null;
  /** Id of a key, `playground`, or null for all. */
  readonly key: string | null;
}

const DAY_MS = 86_400_000;
const DEFAULT_DAYS = 30;
/** Limit of the console API. */
const MAX_DAYS = 366;

/** Reads filters from a URL query. Invalid values are ignored, because people edit URLs by hand. */
export function readFilter(search: string, now: number): UsageFilter {
  const query = new URLSearchParams(search);
  const to = dayOf(query.get('to')) ?? Math.floor(now / DAY_MS);
  const from = dayOf(query.get('from')) ?? to - DEFAULT_DAYS + 1;
  const usable = from <= to && to - from < MAX_DAYS;
  return {
    from: dayText(usable ? from : to - DEFAULT_DAYS + 1),
    to: dayText(to),
    model: query.get('model') || null,
    key: query.get('key') || null,
  };
}

/** The query for a filter: of the console API, and of the page's own address. */
export function filterQuery({ from, to, model, key }: UsageFilter): URLSearchParams {
  const query = new URLSearchParams({ from, to });
  if (model !== null) query.set('model', model);
  if (key !== null) query.set('key', key);
  return query;
}

/** The last `days` days until today. */
export function lastDays(days: number, now: number): Pick<UsageFilter, 'from' | 'to'> {
  const today = Math.floor(now / DAY_MS);
  return { from: dayText(today - days + 1), to: dayText(today) };
}

/** Every day of the range, oldest first. */
export function daysOf({ from, to }: Pick<UsageFilter, 'from' | 'to'>): string[] {
  const first = dayOf(from);
  const last = dayOf(to);
  if (first === null || last === null) return [];
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => dayText(first + index));
}

function dayOf(text: string | null): number | null {
  if (text === null || !/^\d{4}-\d{2}-\d{2}$/.test(text)) return null;
  const day = Date.parse(`${text}T00:00:00Z`) / DAY_MS;
  return Number.isInteger(day) && dayText(day) === text ? day : null;
}

function dayText(day: number): string {
  return new Date(day * DAY_MS).toISOString().slice(0, 10);
}
