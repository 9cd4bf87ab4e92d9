/** `AvailabilityPolicy`: when this machine serves, by the `availability` settings of `config.toml`. */
import { type Config, DAYS } from '../../config/config.js';

export { DAYS };
export type Day = (typeof DAYS)[number];

/** Weekly time window in wall-clock time. If `to` is not after `from`, the window ends on the next day. */
export interface Window {
  readonly days: readonly Day[];
  /** `HH:MM`. */
  readonly from: string;
  /** `HH:MM`; `24:00` is the end of the day. */
  readonly to: string;
}

export interface AvailabilityPolicy {
  /** IANA name; null for the machine's current zone. */
  readonly timeZone: string | null;
  /** Empty: always. */
  readonly windows: readonly Window[];
  /** Minutes without owner input before serving; null to serve regardless of use. */
  readonly onlyWhenIdleMinutes: number | null;
  readonly onBattery: 'stop' | 'serve';
  /** With `stop`, serious heat ends serving; with `serve`, only critical heat. */
  readonly whenHot: 'stop' | 'serve';
  /** Treatment of running jobs when serving ends. */
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

/** Minutes since midnight of `HH:MM`, up to 1440 for `24:00`; null if invalid. */
export function minuteOf(text: string): number | null {
  const parts = /^(\d\d):(\d\d)$/.exec(text);
  if (parts === null) return null;
  const minute = Number(parts[1]) * 60 + Number(parts[2]);
  return Number(parts[2]) < 60 && minute <= 1440 ? minute : null;
}
