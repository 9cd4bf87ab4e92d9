/** Filters of the usage page, stored in its URL so that a view can be linked. */
import { formatDay, parseDay, today } from '../../features/account/utc-days.js';

export interface UsageFilter {
  /** Days (UTC), inclusive. */
  readonly from: string;
  readonly to: string;
  /** Null: all models. */
  readonly model: string | null;
  /** Id of a key, `playground`, or null for all. */
  readonly key: string | null;
}

const DEFAULT_DAYS = 30;
/** Maximum days that the console API accepts. */
const MAX_DAYS = 366;

/** Reads filters from a URL query. Invalid values are ignored, because people edit URLs by hand. */
export function readFilter(search: string, now: number): UsageFilter {
  const query = new URLSearchParams(search);
  const to = parseDay(query.get('to')) ?? today(now);
  const from = parseDay(query.get('from')) ?? to - DEFAULT_DAYS + 1;
  const usable = from <= to && to - from < MAX_DAYS;
  return {
    from: formatDay(usable ? from : to - DEFAULT_DAYS + 1),
    to: formatDay(to),
    model: query.get('model') || null,
    key: query.get('key') || null,
  };
}

/** Builds the query of a filter, for the console API and for the URL of the page. */
export function filterQuery({ from, to, model, key }: UsageFilter): URLSearchParams {
  const query = new URLSearchParams({ from, to });
  if (model !== null) query.set('model', model);
  if (key !== null) query.set('key', key);
  return query;
}

const FILTERS = ['from', 'to', 'model', 'key'];

/** Replaces the filters in a URL query, and retains other parameters. */
export function withFilter(search: string, filter: UsageFilter): URLSearchParams {
  const query = new URLSearchParams(search);
  for (const name of FILTERS) query.delete(name);
  for (const [name, value] of filterQuery(filter)) query.set(name, value);
  return query;
}
