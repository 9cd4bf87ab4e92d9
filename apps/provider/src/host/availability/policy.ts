/**
 * What an owner asks for: when this machine serves, and what makes it stop. Words of the owner's configuration in, values out;
 * nothing here knows the time or the machine.
 */
import { type Config, DAYS } from '../../config/config.js';

export { DAYS };
export type Day = (typeof DAYS)[number];

/** A part of some days, by the clock on the wall. One whose end is not after its beginning ends on the next day. */
export interface Window {
  /** On which it begins. */
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

export function policyOf({ availability }: Pick<Config, 'availability'>): AvailabilityPolicy {
  return {
    timeZone: availability.time_zone ?? null,
    windows: availability.windows.map(({ days = [...DAYS], from, to }) => ({ days, from, to })),
    onlyWhenIdleMinutes: availability.only_when_idle_minutes ?? null,
    onBattery: availability.on_battery,
    whenHot: availability.when_hot,
    whenLeaving: availability.when_leaving,
  };
}

/** Minutes since midnight of `HH:MM`, up to 1440 for `24:00`; null when it is no time of day. */
export function minuteOf(text: string): number | null {
  const parts = /^(\d\d):(\d\d)$/.exec(text);
  if (parts === null) return null;
  const minute = Number(parts[1]) * 60 + Number(parts[2]);
  return Number(parts[2]) < 60 && minute <= 1440 ? minute : null;
}
