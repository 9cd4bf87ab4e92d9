/**
 * Schedules against an independent model: every minute around clock changes is looked up by Intl alone, in many zones.
 *
 * Open state and next change must agree.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DAYS, type Day, type Window } from '../../../src/host/availability/policy.js';
import { isOpen, nextChange, openTimes } from '../../../src/host/availability/windows.js';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const at = (iso: string): number => Date.parse(iso);

/** Zones and days with unusual clock changes. */
const ODD: readonly (readonly [zone: string, from: string])[] = [
  ['Europe/Berlin', '2026-03-28T12:00:00Z'],
  ['Europe/Berlin', '2026-10-24T12:00:00Z'],
  ['America/New_York', '2026-11-01T00:00:00Z'],
  // Half an hour of daylight saving.
  ['Australia/Lord_Howe', '2026-04-04T00:00:00Z'],
  ['Australia/Lord_Howe', '2026-10-03T00:00:00Z'],
  // Midnight does not exist.
  ['Africa/Cairo', '2026-04-23T12:00:00Z'],
  ['America/Sao_Paulo', '2018-11-03T12:00:00Z'],
  // The hour before midnight comes twice.
  ['America/Havana', '2026-10-31T12:00:00Z'],
  // A whole day does not exist.
  ['Pacific/Apia', '2011-12-29T12:00:00Z'],
  ['Asia/Kathmandu', '2026-06-01T00:00:00Z'],
  ['Pacific/Chatham', '2026-09-26T06:00:00Z'],
  ['Africa/Casablanca', '2027-02-06T12:00:00Z'],
  ['UTC', '2026-12-31T00:00:00Z'],
];

interface Wall {
  readonly day: number;
  readonly minute: number;
}

/** Minutes per examined day, plus a margin. */
const MINUTES = 26 * 60;

/** Wall-clock time of each minute from a moment on, by Intl alone. */
function wallClock(zone: string, start: number): readonly Wall[] {
  const format = new Intl.DateTimeFormat('en-GB', {
    timeZone: zone,
    weekday: 'short',
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
  });
  return Array.from({ length: MINUTES + 1 }, (_, index) => {
    const parts = Object.fromEntries(format.formatToParts(start + index * MINUTE).map(({ type, value }) => [type, value]));
    return { day: DAYS.indexOf(parts.weekday?.toLowerCase() as Day), minute: Number(parts.hour) * 60 + Number(parts.minute) };
  });
}

/** Minutes of the week that the windows cover. */
function coveredMinutes(windows: readonly Window[]): ReadonlySet<number> {
  const covered = new Set<number>();
  for (const { days, from, to } of windows) {
    const [begin, end] = [from, to].map((text) => Number(text.slice(0, 2)) * 60 + Number(text.slice(3))) as [number, number];
    const length = end > begin ? end - begin : end + 1440 - begin;
    for (const day of days) {
      for (let minute = 0; minute < length; minute++) covered.add((DAYS.indexOf(day) * 1440 + begin + minute) % (7 * 1440));
    }
  }
  return covered;
}

const time = fc
  .integer({ min: 0, max: 1439 })
  .map((minute) => `${String(Math.floor(minute / 60)).padStart(2, '0')}:${String(minute % 60).padStart(2, '0')}`);
const window: fc.Arbitrary<Window> = fc.record({
  days: fc.subarray([...DAYS], { minLength: 1 }),
  from: time,
  to: fc.oneof(time, fc.constant('24:00')),
});

describe('a schedule', () => {
  const wallOf = new Map(ODD.map((odd) => [odd, wallClock(odd[0], at(odd[1]))]));

  it('is open exactly in its windows by the wall clock, and reports the next change', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...ODD),
        fc.array(window, { minLength: 1, maxLength: 3 }),
        fc.integer({ min: 0, max: 59_999 }),
        (odd, windows, offset) => {
          const [zone, from] = odd;
          const covered = coveredMinutes(windows);
          const start = at(from);
          const walls = wallOf.get(odd) ?? [];
          const truth = (index: number): boolean => covered.has((walls[index]?.day ?? 0) * 1440 + (walls[index]?.minute ?? 0));
          let expected: number | null = null;
          // Backwards, so that the next change after each minute is known.
          let later = truth(MINUTES);
          for (let index = MINUTES - 1; index >= 0; index--) {
            const moment = start + index * MINUTE;
            const open = truth(index);
            if (open !== later) expected = moment + MINUTE;
            later = open;
            if (index % 97 !== 0) continue;
            expect([zone, moment, isOpen(windows, zone, moment + offset)]).toEqual([zone, moment, open]);
            const change = nextChange(windows, zone, moment + offset);
            if (expected === null) expect(change === null || change > start + MINUTES * MINUTE).toBe(true);
            else expect([zone, moment, change]).toEqual([zone, moment, expected]);
          }
        },
      ),
      { numRuns: 40 },
    );
  });

  it('without windows is always open, and never changes', () => {
    expect([isOpen([], 'Europe/Berlin', 0), nextChange([], 'Europe/Berlin', 0)]).toEqual([true, null]);
    expect(openTimes([], 'UTC', 5, 10)).toEqual([{ from: 5, to: null }]);
  });

  it('without a closed time never changes', () => {
    const all: Window[] = [{ days: [...DAYS], from: '00:00', to: '24:00' }];
    expect(openTimes(all, 'Europe/Berlin', 0, 7 * 24 * HOUR)).toEqual([{ from: 0, to: null }]);
  });
});

describe('an overnight window', () => {
  const night: Window[] = [{ days: ['sat'], from: '22:00', to: '07:00' }];

  it('is an hour shorter when the clock goes forward, and an hour longer when the clock goes back', () => {
    const lengthFrom = (start: string): number => {
      const [first] = openTimes(night, 'Europe/Berlin', at(start), at(start) + 48 * HOUR);
      return ((first?.to ?? 0) - (first?.from ?? 0)) / HOUR;
    };
    expect([lengthFrom('2026-03-28T12:00:00Z'), lengthFrom('2026-06-06T12:00:00Z'), lengthFrom('2026-10-24T12:00:00Z')]).toEqual([
      8, 9, 10,
    ]);
  });

  it('excludes a skipped hour and includes a repeated hour twice', () => {
    const short: Window[] = [{ days: [...DAYS], from: '02:15', to: '02:45' }];
    const spring = openTimes(short, 'Europe/Berlin', at('2026-03-28T22:00:00Z'), at('2026-03-29T12:00:00Z'));
    expect(spring).toEqual([]);
    const autumn = openTimes(short, 'Europe/Berlin', at('2026-10-24T22:00:00Z'), at('2026-10-25T12:00:00Z'));
    expect(autumn.map(({ from, to }) => [new Date(from).toISOString(), ((to ?? 0) - from) / MINUTE])).toEqual([
      ['2026-10-25T00:15:00.000Z', 30],
      ['2026-10-25T01:15:00.000Z', 30],
    ]);
  });
});
