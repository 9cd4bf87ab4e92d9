/**
 * Whether a schedule is open at a moment, and when that changes. A window is open whenever the clock on the wall of its time zone
 * shows a time inside it: an hour that is skipped is in no window, and one that comes twice counts twice.
 */
import { Temporal } from 'temporal-polyfill';
import { DAYS, minuteOf, type Window } from './policy.js';

/** How far ahead a change is looked for, in days: a week, and one more for the window that began before it. */
const LOOK_AHEAD_DAYS = 8;
/** Changes of a zone's offset in that time. Real ones are months apart. */
const MOST_TRANSITIONS = 4;

export interface OpenTime {
  /** Milliseconds since 1970. */
  readonly from: number;
  /** Null: it does not end. */
  readonly to: number | null;
}

/** `at` in milliseconds since 1970. Without windows it is always open. */
export function isOpen(windows: readonly Window[], timeZone: string, at: number): boolean {
  if (windows.length === 0) return true;
  const wall = zoned(timeZone, at);
  const minute = wall.hour * 60 + wall.minute;
  return windows.some((window) => contains(window, wall.dayOfWeek - 1, minute));
}

/** The first moment after `at` at which it opens or closes; null when it never does within a week. */
export function nextChange(windows: readonly Window[], timeZone: string, at: number): number | null {
  const before = isOpen(windows, timeZone, at);
  const moments = [...edges(windows, timeZone, at)].filter((moment) => moment > at).sort((a, b) => a - b);
  return moments.find((moment) => isOpen(windows, timeZone, moment) !== before) ?? null;
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

/** `day`: 0 for Monday. `minute`: since midnight. */
function contains({ days, from, to }: Window, day: number, minute: number): boolean {
  const begin = minuteOf(from) ?? 0;
  const end = minuteOf(to) ?? 0;
  const has = (index: number): boolean => days.includes(DAYS[(index + 7) % 7] as Window['days'][number]);
  if (begin < end) return has(day) && minute >= begin && minute < end;
  return (has(day) && minute >= begin) || (has(day - 1) && minute < end);
}

/** Every moment at which a window may begin or end, and those at which the clocks are set. */
function* edges(windows: readonly Window[], timeZone: string, at: number): Iterable<number> {
  const now = zoned(timeZone, at);
  const midnight = now.toPlainDate().toPlainDateTime();
  const minutes = new Set(windows.flatMap(({ from, to }) => [minuteOf(from) ?? 0, minuteOf(to) ?? 0]));
  // What is overnight also ends by the change of the day of the week.
  minutes.add(0);
  for (let day = 0; day <= LOOK_AHEAD_DAYS; day++) {
    for (const minute of minutes) {
      const shown = midnight.add({ days: day, minutes: minute });
      for (const disambiguation of ['earlier', 'later'] as const)
        yield shown.toZonedDateTime(timeZone, { disambiguation }).epochMilliseconds;
    }
  }
  const last = at + LOOK_AHEAD_DAYS * 86_400_000;
  let transition = now.getTimeZoneTransition('next');
  for (let count = 0; count < MOST_TRANSITIONS && transition && transition.epochMilliseconds <= last; count++) {
    yield transition.epochMilliseconds;
    transition = transition.getTimeZoneTransition('next');
  }
}

function zoned(timeZone: string, at: number): Temporal.ZonedDateTime {
  return Temporal.Instant.fromEpochMilliseconds(Math.floor(at)).toZonedDateTimeISO(timeZone);
}
