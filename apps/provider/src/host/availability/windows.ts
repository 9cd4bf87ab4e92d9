/** Evaluates schedule windows in wall-clock time. An hour skipped by daylight saving is in no window; a repeated hour counts twice. */
import { Temporal } from 'temporal-polyfill';
import { DAYS, minuteOf, type Window } from './policy.js';

/** Search limit, because windows repeat after a week. */
const LOOK_AHEAD_DAYS = 8;
const DAY_MS = 86_400_000;
/** Maximum changes of the UTC offset within the search. Real changes are months apart. */
const MAX_TRANSITIONS = 4;

interface OpenTime {
  /** Milliseconds since 1970. */
  readonly from: number;
  /** Null if the schedule does not close within eight days. */
  readonly to: number | null;
}

/** `at` in milliseconds since 1970. An empty list is always open. */
export function isOpen(windows: readonly Window[], timeZone: string, at: number): boolean {
  return windows.length === 0 || isCovered(windows.map(spanOf), timeZone, at);
}

/** Next moment at which the schedule opens or closes; null if none within eight days. */
export function nextChange(windows: readonly Window[], timeZone: string, at: number): number | null {
  if (windows.length === 0) return null;
  const spans = windows.map(spanOf);
  const before = isCovered(spans, timeZone, at);
  // Most schedules change within a day, so two days are searched first.
  for (const { days, within } of [
    { days: 2, within: DAY_MS },
    { days: LOOK_AHEAD_DAYS, within: LOOK_AHEAD_DAYS * DAY_MS },
  ]) {
    const candidates = [...candidateMoments(spans, timeZone, at, days)];
    const moments = candidates.filter((moment) => moment > at && moment <= at + within).sort((a, b) => a - b);
    const change = moments.find((moment) => isCovered(spans, timeZone, moment) !== before);
    if (change !== undefined) return change;
  }
  return null;
}

/** Open times that begin between `at` and `until`, or are open at `at`. The last may end later. */
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

/** A {@link Window} as numbers. */
interface Span {
  /** Whether the window begins on each day of the week, Monday first. */
  readonly days: readonly boolean[];
  /** Minutes since midnight. If `end` is not after `begin`, the span ends on the next day. */
  readonly begin: number;
  readonly end: number;
}

function spanOf({ days, from, to }: Window): Span {
  return { days: DAYS.map((day) => days.includes(day)), begin: minuteOf(from) ?? 0, end: minuteOf(to) ?? 0 };
}

function isCovered(spans: readonly Span[], timeZone: string, at: number): boolean {
  const { dayOfWeek, hour, minute: minuteOfHour } = zoned(timeZone, at);
  const [day, minute] = [dayOfWeek - 1, hour * 60 + minuteOfHour];
  return spans.some(({ days, begin, end }) => {
    if (begin < end) return days[day] === true && minute >= begin && minute < end;
    return (days[day] === true && minute >= begin) || (days[(day + 6) % 7] === true && minute < end);
  });
}

/** Moments at which the schedule may open or close, unordered. */
function* candidateMoments(spans: readonly Span[], timeZone: string, at: number, days: number): Iterable<number> {
  const now = zoned(timeZone, at);
  const midnight = now.toPlainDate().toPlainDateTime();
  const minutes = new Set(spans.flatMap(({ begin, end }) => [begin, end]));
  // Midnight ends an overnight window whose next day is not listed.
  minutes.add(0);
  for (let day = 0; day <= days; day++) {
    for (const minute of minutes) {
      const wallClock = midnight.add({ days: day, minutes: minute });
      for (const disambiguation of ['earlier', 'later'] as const)
        yield wallClock.toZonedDateTime(timeZone, { disambiguation }).epochMilliseconds;
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
