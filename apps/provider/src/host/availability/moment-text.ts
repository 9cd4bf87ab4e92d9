/** Formats a moment for the owner: time of day, plus weekday or date if needed. */

const DAY_MS = 86_400_000;

/** For example `18:00`, `Mon 07:00`, `3 Jan 07:00`. `moment` and `now` in milliseconds since 1970. */
export function momentText(moment: number, timeZone: string, now: number): string {
  const time = format(moment, timeZone, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
  if (dateText(moment, timeZone) === dateText(now, timeZone)) return time;
  const near = Math.abs(moment - now) < 6 * DAY_MS;
  const day = near ? format(moment, timeZone, { weekday: 'short' }) : dateText(moment, timeZone);
  return `${day} ${time}`;
}

/** For example `3 Jan`. */
function dateText(moment: number, timeZone: string): string {
  return format(moment, timeZone, { day: 'numeric', month: 'short' });
}

function format(moment: number, timeZone: string, options: Intl.DateTimeFormatOptions): string {
  return new Intl.DateTimeFormat('en-GB', { ...options, timeZone }).format(moment);
}
