/** Days and hours in UTC: conversions and texts. The console API writes a day as `2026-01-31`. */
export interface DayRange {
  readonly from: string;
  /** Inclusive. */
  readonly to: string;
}

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const SHORT = new Intl.DateTimeFormat('en', { day: 'numeric', month: 'short', timeZone: 'UTC' });
const SHORT_HOUR = new Intl.DateTimeFormat('en', {
  day: 'numeric',
  month: 'short',
  hour: '2-digit',
  minute: '2-digit',
  hourCycle: 'h23',
  timeZone: 'UTC',
});
const LONG = new Intl.DateTimeFormat('en', { day: 'numeric', month: 'short', year: 'numeric', timeZone: 'UTC' });

/** The last `count` days, including today. */
export function lastDays(count: number, now: number): DayRange {
  return { from: formatDay(today(now) - count + 1), to: formatDay(today(now)) };
}

/** Today in days since 1970. `now`: milliseconds since 1970. */
export function today(now: number): number {
  return Math.floor(now / DAY_MS);
}

/** All days of a range, oldest first. Empty for an invalid range. */
export function eachDay({ from, to }: DayRange): string[] {
  const first = parseDay(from);
  const last = parseDay(to);
  if (first === null || last === null) return [];
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => formatDay(first + index));
}

/** Day in days since 1970. Null if `text` is no valid date. */
export function parseDay(text: string | null): number | null {
  if (text === null || !/^\d{4}-\d{2}-\d{2}$/.test(text)) return null;
  const day = Date.parse(`${text}T00:00:00Z`) / DAY_MS;
  return Number.isInteger(day) && formatDay(day) === text ? day : null;
}

/** Inverse of {@link parseDay}. */
export function formatDay(day: number): string {
  return new Date(day * DAY_MS).toISOString().slice(0, 10);
}

/** All hours from `first` to `last`, both included. Hours are written as in the console API: `2026-01-31T12:00:00.000Z`. */
export function eachHour(first: string, last: string): string[] {
  const start = Date.parse(first);
  return Array.from({ length: (Date.parse(last) - start) / HOUR_MS + 1 }, (_, index) => new Date(start + index * HOUR_MS).toISOString());
}

/** Formats an hour as `Jan 31, 12:00`. */
export function shortHour(hour: string): string {
  return SHORT_HOUR.format(new Date(hour));
}

/** Formats a day as `Jan 31`. */
export function shortDay(day: string): string {
  return SHORT.format(new Date(`${day}T00:00:00Z`));
}

/** Formats a day as `Jan 31, 2026`. */
export function longDay(day: string): string {
  return LONG.format(new Date(`${day}T00:00:00Z`));
}
