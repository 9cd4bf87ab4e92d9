/** The schedule and its next seven days, for the command `schedule`: as JSON and as text. */
import { momentText } from '../../host/availability/moment-text.js';
import { windowText } from '../../host/availability/parse-schedule.js';
import type { AvailabilityPolicy } from '../../host/availability/policy.js';
import { isOpen, nextChange, openTimes } from '../../host/availability/windows.js';

interface ScheduleFacts {
  readonly time_zone: string;
  /** An empty list means always. */
  readonly windows: AvailabilityPolicy['windows'];
  readonly open_now: boolean;
  /** ISO 8601; null if not within eight days. */
  readonly next_change_at: string | null;
  /** Of the next seven days. `to` is null without an end in the following eight. */
  readonly open_times: readonly { readonly from: string; readonly to: string | null }[];
}

const WEEK_MS = 7 * 86_400_000;

/** `now` in milliseconds since 1970. */
export function scheduleFacts(
  { windows, timeZone }: Pick<AvailabilityPolicy, 'windows' | 'timeZone'>,
  systemZone: string,
  now: number,
): ScheduleFacts {
  const zone = timeZone ?? systemZone;
  const change = nextChange(windows, zone, now);
  return {
    time_zone: zone,
    windows,
    open_now: isOpen(windows, zone, now),
    next_change_at: change === null ? null : iso(change),
    open_times: openTimes(windows, zone, now, now + WEEK_MS).map(({ from, to }) => ({ from: iso(from), to: to === null ? null : iso(to) })),
  };
}

export function scheduleLines({ time_zone: zone, windows, open_now, next_change_at, open_times }: ScheduleFacts, now: number): string[] {
  if (windows.length === 0) return ['No schedule. This machine serves at all times.'];
  const change = next_change_at === null ? '' : `, until ${momentText(Date.parse(next_change_at), zone, now)}`;
  return [
    `Schedule (${zone})`,
    ...windows.map((window) => `  ${windowText(window)}`),
    `Currently ${open_now ? 'open' : 'closed'}${change}.`,
    'The next seven days',
    ...(open_times.length === 0 ? ['  never open'] : open_times.map((time) => `  ${timeText(time, zone)}`)),
  ];
}

function timeText({ from, to }: ScheduleFacts['open_times'][number], zone: string): string {
  const begin = Date.parse(from);
  const head = `${dayText(begin, zone)} ${clock(begin, zone)}`;
  if (to === null) return `${head} on, without an end`;
  const end = Date.parse(to);
  return `${head} - ${sameDay(begin, end, zone) ? '' : `${dayText(end, zone)} `}${clock(end, zone)}`;
}

function sameDay(a: number, b: number, zone: string): boolean {
  return dayText(a, zone) === dayText(b, zone);
}

function dayText(moment: number, timeZone: string): string {
  return new Intl.DateTimeFormat('en-GB', { weekday: 'short', day: '2-digit', month: 'short', timeZone }).format(moment).replace(',', '');
}

function clock(moment: number, timeZone: string): string {
  return new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', hourCycle: 'h23', timeZone }).format(moment);
}

function iso(moment: number): string {
  return new Date(moment).toISOString();
}
