/** Days in UTC, as in the console API. */
import type { Days } from './queries.js';

const DAY_MS = 86_400_000;

/** The last `count` days, today included. */
export function lastDays(count: number, now: number): Days {
  return { from: dayOf(now - (count - 1) * DAY_MS), to: dayOf(now) };
}

/** All days of a range, oldest first. */
export function eachDay({ from, to }: Days): string[] {
  const days: string[] = [];
  for (let at = Date.parse(`${from}T00:00:00Z`); at <= Date.parse(`${to}T00:00:00Z`); at += DAY_MS) days.push(dayOf(at));
  return days;
}

const LABEL = new Intl.DateTimeFormat('en', { day: 'numeric', month: 'short', year: 'numeric', timeZone: 'UTC' });

const SHORT = new Intl.DateTimeFormat('en', { day: 'numeric', month: 'short', timeZone: 'UTC' });

/** Such as `Jan 31`. */
export function shortDay(day: string): string {
  return SHORT.format(new Date(`${day}T00:00:00Z`));
}

/** Such as `Jan 31, 2026`. */
export function dayLabel(day: string): string {
  return LABEL.format(new Date(`${day}T00:00:00Z`));
}

function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}
