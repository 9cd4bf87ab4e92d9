/** The owner's pause: parsing of command arguments, and reading and writing of the stored form. */

import { lazyValidator } from '@inference/protocol';
import { Temporal } from 'temporal-polyfill';
import Type from 'typebox';
import type { Pause } from './availability.js';
import { minuteOf } from './policy.js';

/** Longest pause with an end, in milliseconds. */
export const MAX_PAUSE_MS = 30 * 24 * 3_600_000;

const nullable = <Schema extends Parameters<typeof Type.Union>[0][number]>(schema: Schema) => Type.Union([schema, Type.Null()]);
const Moment = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
const storedPause = lazyValidator(
  Type.Object({
    until: nullable(Moment),
    console: Type.Optional(Type.Object({ at: Moment, account: nullable(Type.String({ maxLength: 256 })) })),
  }),
);

export function pauseText({ until, console: from }: Pause): string {
  return `${JSON.stringify({ until, ...(from === undefined ? {} : { console: from }) })}\n`;
}

/** Returns null for an expired pause or a damaged text. `now` is in milliseconds since 1970. */
export function readPause(text: string, now: number): Pause | null {
  let found: unknown;
  try {
    found = JSON.parse(text);
  } catch {
    return null;
  }
  if (!storedPause().Check(found)) return null;
  return found.until === null || found.until > now ? found : null;
}

const UNIT_MS = { d: 86_400_000, h: 3_600_000, m: 60_000 } as const;

/** Parses the words after `pause`. Throws an Error with a sentence for the owner. `now` is in milliseconds since 1970. */
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

/** Null if the text is no duration or zero. */
function durationMs(text: string): number | null {
  if (!/^(?:\d{1,5}[dhm])+$/.test(text)) return null;
  const parts = [...text.matchAll(/(\d+)([dhm])/g)];
  if (new Set(parts.map(([, , unit]) => unit)).size !== parts.length) return null;
  const ms = parts.reduce((sum, [, count, unit]) => sum + Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS], 0);
  return ms > 0 ? ms : null;
}

/** Next moment of a wall-clock time; if skipped by a clock change, the moment after the gap. */
function nextTime(text: string, now: number, timeZone: string): number {
  const minute = minuteOf(/^\d:/.test(text) ? `0${text}` : text);
  if (minute === null) throw new Error(`${JSON.stringify(text)} is not a time of day; use for example 18:00.`);
  const today = Temporal.Instant.fromEpochMilliseconds(now).toZonedDateTimeISO(timeZone).toPlainDate().toPlainDateTime();
  for (const days of [0, 1, 2]) {
    const shown = today.add({ days, minutes: minute });
    for (const disambiguation of ['earlier', 'later'] as const) {
      const moment = shown.toZonedDateTime(timeZone, { disambiguation }).epochMilliseconds;
      if (moment > now && showsMinute(moment, timeZone, minute)) return moment;
    }
    const after = shown.toZonedDateTime(timeZone, { disambiguation: 'later' }).epochMilliseconds;
    if (after > now) return after;
  }
  throw new Error(`The time ${text} does not occur in the next days, because the clock changes.`);
}

function showsMinute(moment: number, timeZone: string, minute: number): boolean {
  const { hour, minute: past } = Temporal.Instant.fromEpochMilliseconds(moment).toZonedDateTimeISO(timeZone);
  return hour * 60 + past === minute % 1440;
}
