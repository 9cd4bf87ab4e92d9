/**
 * Whether a schedule is open at a moment, and when that changes. A window is open whenever the clock on the wall of its time zone
 * shows a time inside it: an hour that is skipped is in no window, and one that comes twice counts twice.
 */
import { Temporal } from 'temporal-polyfill';
import { DAYS, minuteOf, type Window } from './policy.js';

/** How far ahead a change is looked for, in days: a week, and one more for the window that began before it. */
const LOOK_AHEAD_DAYS = 8;
const DAY_MS = 86_400_000;
/** Changes of a zone's offset in that time. Real ones are months apart. */
const MAX_TRANSITIONS = 4;

export interface OpenTime {
  /** Milliseconds since 1970. */
  readonly from: number;
  /** Null: it does not end. */
  readonly to: number | null;
}

/** `at` in milliseconds since 1970. Without windows it is always open. */
export function isOpen(windows: readonly Window[], timeZone: string, at: number): boolean {
  return windows.length === 0 || isCovered(windows.map(spanOf), timeZone, at);
}

/** The first moment after `at` at which it opens or closes; null when it never does within a week. */
export function nextChange(windows: readonly Window[], timeZone: string, at: number): number | null {
  if (windows.length === 0) return null;
  const spans = windows.map(spanOf);
  const before = isCovered(spans, timeZone, at);
  // Most schedules change within a day, for which two days of the wall's clock are enough to look at.
  for (const { days, within } of [
    { days: 2, within: DAY_MS },
    { days: LOOK_AHEAD_DAYS, within: LOOK_AHEAD_DAYS * DAY_MS },
  ]) {
    const moments = [...edges(spans, timeZone, at, days)].filter((moment) => moment > at && moment <= at + within).sort((a, b) => a - b);
    const change = moments.find((moment) => isCovered(spans, timeZone, moment) !== before);
    if (change !== undefined) return change;
  }
  return null;
}

/** The times from `at` to `until` in which it is open, the first one from `at` on if it is open then. */
export function openTimes(windows: readonly Window[], timeZone: string, at: number, until: number): OpenTime[] {
  const times: OpenTime[] = [];
  let open = isOpen(windows, timeZone, at);
  let from = at;
  while (from < until) {
    const change = nextChange(windows, timeZone, from);
    if (open) times.push({ from, to: change });
    if (change === null) break;
    from = change;
    open = !open;
  }
  return times;
}

/** A window in numbers. */
interface Span {
  /** By day of the week, Monday first. */
  readonly days: readonly boolean[];
  /** Minutes since midnight; not after `begin`: it ends on the next day. */
  readonly begin: number;
  readonly end: number;
}

function spanOf({ days, from, to }: Window): Span {
  return { days: DAYS.map((day) => days.includes(day)), begin: minuteOf(from) ?? 0, end: minuteOf(to) ?? 0 };
}

function isCovered(spans: readonly Span[], timeZone: string, at: number): boolean {
  const { dayOfWeek, hour, minute: past } = zoned(timeZone, at);
  const [day, minute] = [dayOfWeek - 1, hour * 60 + past];
  return spans.some(({ days, begin, end }) => {
    if (begin < end) return days[day] === true && minute >= begin && minute < end;
    return (days[day] === true && minute >= begin) || (days[(day + 6) % 7] === true && minute < end);
  });
}

/** Every moment at which a window may begin or end, and those at which the clocks are set. */
function* edges(spans: readonly Span[], timeZone: string, at: number, days: number): Iterable<number> {
  const now = zoned(timeZone, at);
  const midnight = now.toPlainDate().toPlainDateTime();
  const minutes = new Set(spans.flatMap(({ begin, end }) => [begin, end]));
  // What is overnight also ends by the change of the day of the week.
  minutes.add(0);
  for (let day = 0; day <= days; day++) {
    for (const minute of minutes) {
      const shown = midnight.add({ days: day, minutes: minute });
      for (const disambiguation of ['earlier', 'later'] as const)
        yield shown.toZonedDateTime(timeZone, { disambiguation }).epochMilliseconds;
    }
  }
  const last = at + days * DAY_MS;
  let transition = now.getTimeZoneTransition('next');
  for (let count = 0; count < MAX_TRANSITIONS && transition && transition.epochMilliseconds <= last; count++) {
    yield transition.epochMilliseconds;
    transition = transition.getTimeZoneTransition('next');
  }
}

function zoned(timeZone: string, at: number): Temporal.ZonedDateTime {
  return Temporal.Instant.fromEpochMilliseconds(Math.floor(at)).toZonedDateTimeISO(timeZone);
}
