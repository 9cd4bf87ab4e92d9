/** `parsePauseArguments` parses the arguments of the command `pause`: none, a duration such as `2h30m`, or `until 18:00`. */
import { Temporal } from 'temporal-polyfill';
import type { Pause } from './availability.js';
import { MAX_PAUSE_MS } from './pause.js';
import { minuteOf } from './policy.js';

const UNIT_MS = { d: 86_400_000, h: 3_600_000, m: 60_000 } as const;

/** Throws an Error with a sentence for the owner. `now` is in milliseconds since 1970. */
export function parsePauseArguments(words: readonly string[], now: number, timeZone: string): Pause {
  const [first, second] = words;
  if (first === undefined) return { until: null };
  if (first === 'until') {
    if (second === undefined || words.length > 2) throw new Error('"until" needs a time of day, such as 18:00.');
    return { until: nextTime(second, now, timeZone) };
  }
  if (second !== undefined) throw new Error(`Unexpected argument: ${JSON.stringify(second)}.`);
  const ms = durationMs(first);
  if (ms === null) throw new Error(`${JSON.stringify(first)} is not a duration; use for example 30m, 2h or "until 18:00".`);
  if (ms > MAX_PAUSE_MS) throw new Error('A pause lasts at most 30 days. Without a duration, it lasts until you resume.');
  return { until: now + ms };
}

/** Null if the text is no duration, zero, or has a unit twice. */
function durationMs(text: string): number | null {
  if (!/^(?:\d{1,5}[dhm])+$/.test(text)) return null;
  const parts = [...text.matchAll(/(\d+)([dhm])/g)];
  if (new Set(parts.map(([, , unit]) => unit)).size !== parts.length) return null;
  const ms = parts.reduce((sum, [, count, unit]) => sum + Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS], 0);
  return ms > 0 ? ms : null;
}

/** Next moment of a wall-clock time; if skipped by a clock change, a moment after the gap. */
function nextTime(text: string, now: number, timeZone: string): number {
  const minute = minuteOf(/^\d:/.test(text) ? `0${text}` : text);
  if (minute === null) throw new Error(`${JSON.stringify(text)} is not a time of day; use for example 18:00.`);
  const today = Temporal.Instant.fromEpochMilliseconds(now).toZonedDateTimeISO(timeZone).toPlainDate().toPlainDateTime();
  for (const days of [0, 1, 2]) {
    const wallClock = today.add({ days, minutes: minute });
    for (const disambiguation of ['earlier', 'later'] as const) {
      const moment = wallClock.toZonedDateTime(timeZone, { disambiguation }).epochMilliseconds;
      if (moment > now && showsMinute(moment, timeZone, minute)) return moment;
    }
    const afterGap = wallClock.toZonedDateTime(timeZone, { disambiguation: 'later' }).epochMilliseconds;
    if (afterGap > now) return afterGap;
  }
  throw new Error(`The time ${text} does not occur in the next days, because the clock changes.`);
}

function showsMinute(moment: number, timeZone: string, minute: number): boolean {
  const { hour, minute: minuteOfHour } = Temporal.Instant.fromEpochMilliseconds(moment).toZonedDateTimeISO(timeZone);
  return hour * 60 + minuteOfHour === minute % 1440;
}
