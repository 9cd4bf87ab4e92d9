/** Times and days (UTC) in queries and responses. Days are numbered since 1970. A range of days includes both `from` and `to`. */
import { RequestError } from '@inference/formats';
import type { TimeSpan } from '../../database/time-span.js';
import type { DayRange } from '../../database/usage-repository.js';
import { DAY_MS } from '../../time-units.js';
import { TIME_DESCRIPTION } from '../billing/payment-schemas.js';

/** Maximum days of a range, `from` and `to` included. */
const MAX_DAYS = 366;
const DEFAULT_DAYS = 30;

/** Reads `from` and `to`. Default: `to` is today, and the range has {@link DEFAULT_DAYS} days. Throws RequestError. */
export function readDayRange(query: Readonly<Record<string, string | undefined>>, now: number): DayRange {
  const today = Math.floor(now / DAY_MS);
  const to = query.to === undefined ? today : dayNumber('to', query.to);
  const from = query.from === undefined ? to - DEFAULT_DAYS + 1 : dayNumber('from', query.from);
  if (from > to) throw new RequestError('invalid_request', 'from', 'from must not be after to.');
  if (to - from >= MAX_DAYS) throw new RequestError('invalid_request', 'from', `from and to must cover at most ${MAX_DAYS} days.`);
  return { from, to };
}

/** Reads the optional days `from` and `to`, both inclusive, as milliseconds with `to` exclusive. Throws RequestError. */
export function readTimeSpan(query: Readonly<Record<string, string | undefined>>): TimeSpan {
  const from = query.from === undefined ? null : dayNumber('from', query.from);
  const to = query.to === undefined ? null : dayNumber('to', query.to);
  if (from !== null && to !== null && from > to) throw new RequestError('invalid_request', 'from', 'from must not be after to.');
  return { from: from === null ? null : from * DAY_MS, to: to === null ? null : (to + 1) * DAY_MS };
}

export function dayText(day: number): string {
  return new Date(day * DAY_MS).toISOString().slice(0, 10);
}

function dayNumber(name: string, text: string): number {
  const time = /^\d{4}-\d{2}-\d{2}$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN;
  const day = time / DAY_MS;
  if (Number.isInteger(day) && dayText(day) === text) return day;
  throw new RequestError('invalid_request', name, `${name} must be a day such as 2026-01-31.`);
}

/** Parses a time that matches the schema's pattern, in milliseconds. Throws RequestError for a nonexistent day or hour. */
export function parseTime(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const date = text.slice(0, 10);
  const midnight = Date.parse(`${date}T00:00:00Z`);
  const time = Date.parse(text.length === 10 ? `${text}T00:00:00Z` : text);
  // Some engines read 30 February as a day in March.
  const exists = !Number.isNaN(midnight) && new Date(midnight).toISOString().startsWith(date);
  if (!exists || Number.isNaN(time)) throw new RequestError('invalid_request', name, `${name} must be ${TIME_DESCRIPTION}.`);
  return time;
}

export function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}

export function isoTimeOrNull(ms: number | null): string | null {
  return ms === null ? null : isoTime(ms);
}
