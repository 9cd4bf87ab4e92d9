/** Days of a time zone, summer time and half hours included, as the system's own tables have them. Pure. */

/** Whether a text names a time zone that is known here. */
export function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en-CA', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

/** Names the day of a time in milliseconds: `2026-01-31`. */
export function localDayFormatter(timeZone: string): (ms: number) => string {
  const format = new Intl.DateTimeFormat('en-CA', { timeZone, year: 'numeric', month: '2-digit', day: '2-digit' });
  return (ms) => format.format(ms);
}

const DAY_MS = 86_400_000;

/** The first of so many days that end with the day of `now`. Counted in the calendar: a day may have 23 or 25 hours. */
export function firstDay(today: string, days: number): string {
  return new Date(Date.parse(`${today}T00:00:00Z`) - (days - 1) * DAY_MS).toISOString().slice(0, 10);
}
