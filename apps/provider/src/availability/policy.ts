/**
 * What an owner asks for: when this machine serves, and what makes it stop. Words of the owner's configuration in, checked values
 * out; nothing here knows the time or the machine.
 */

/** Days of the week as an owner writes them, Monday first. */
export const DAYS = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const;
export type Day = (typeof DAYS)[number];

/** A part of some days, by the clock on the wall. One whose end is not after its beginning ends on the next day. */
export interface Window {
  readonly days: readonly Day[];
  /** `HH:MM`. */
  readonly from: string;
  /** `HH:MM`; `24:00` is the end of the day. */
  readonly to: string;
}

export interface AvailabilityPolicy {
  /** IANA name; null: the machine's own zone, wherever it is taken. */
  readonly timeZone: string | null;
  /** None: always. */
  readonly windows: readonly Window[];
  /** It serves only when nobody has used it for so long, in minutes; null: whether or not somebody does. */
  readonly onlyWhenIdleMinutes: number | null;
  readonly onBattery: 'stop' | 'serve';
  /** `stop`: when it is hot. `serve`: until it is too hot to work. */
  readonly whenHot: 'stop' | 'serve';
  /** What becomes of running jobs when its time is over. */
  readonly whenLeaving: 'finish' | 'hand_back';
}

export const DEFAULT_POLICY: AvailabilityPolicy = {
  timeZone: null,
  windows: [],
  onlyWhenIdleMinutes: null,
  onBattery: 'stop',
  whenHot: 'stop',
  whenLeaving: 'finish',
};

/** More than anybody needs, and few enough to be looked at in no time. */
export const MOST_WINDOWS = 64;
export const MOST_IDLE_MINUTES = 24 * 60;

/** Minutes since midnight of `HH:MM`, up to 1440 for `24:00`; null when it is no time of day. */
export function minuteOf(text: string): number | null {
  const parts = /^(\d\d):(\d\d)$/.exec(text);
  if (parts === null) return null;
  const minute = Number(parts[1]) * 60 + Number(parts[2]);
  return Number(parts[2]) < 60 && minute <= 1440 ? minute : null;
}

/** What is wrong with a window, in words that name the field; null: nothing. */
export function windowProblem({ days, from, to }: Window): string | null {
  const begin = minuteOf(from);
  const end = minuteOf(to);
  if (days.length === 0) return 'days is empty; name at least one day';
  if (begin === null || begin === 1440) return `from must be a time of day such as 22:00, not ${JSON.stringify(from)}`;
  if (end === null) return `to must be a time of day such as 07:00, or 24:00, not ${JSON.stringify(to)}`;
  if (begin === end) return `from and to are both ${from}; a whole day is from 00:00 to 24:00`;
  return null;
}

/** Whether there is such a time zone. */
export function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}
