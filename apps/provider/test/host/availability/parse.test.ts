/** Parsing of pauses and schedules, with the errors for invalid texts. */
import { MachineSettingsSchema } from '@inference/protocol';
import fc from 'fast-check';
import { Check } from 'typebox/value';
import { describe, expect, it } from 'vitest';
import { scheduleFacts, scheduleLines } from '../../../src/cli/output/schedule-text.js';
import { momentText } from '../../../src/host/availability/moment-text.js';
import { parsePauseArguments } from '../../../src/host/availability/parse-pause.js';
import { parseSchedule, windowText } from '../../../src/host/availability/parse-schedule.js';
import { DAYS, type Window } from '../../../src/host/availability/policy.js';

const BERLIN = 'Europe/Berlin';
const NOW = Date.parse('2026-11-22T09:30:00Z');
const MINUTE = 60_000;
const until = (words: string, now = NOW, zone = BERLIN): string => {
  const { until: end } = parsePauseArguments(words.split(' ').filter(Boolean), now, zone);
  return end === null ? 'resume' : new Date(end).toISOString();
};

describe('a pause', () => {
  it.each([
    ['', 'resume'],
    ['30m', '2026-11-22T10:00:00.000Z'],
    ['2h', '2026-11-22T11:30:00.000Z'],
    ['1h30m', '2026-11-22T11:00:00.000Z'],
    ['1d', '2026-11-23T09:30:00.000Z'],
    ['until 18:00', '2026-11-22T17:00:00.000Z'],
    ['until 7:00', '2026-11-23T06:00:00.000Z'],
    ['until 10:30', '2026-11-23T09:30:00.000Z'],
    ['until 24:00', '2026-11-22T23:00:00.000Z'],
  ])('of %j lasts until %s', (words, end) => {
    expect(until(words)).toBe(end);
  });

  it('uses the wall clock across clock changes', () => {
    // 02:30 does not exist in the first night and exists twice in the second.
    expect(until('until 02:30', Date.parse('2026-03-28T22:00:00Z'))).toBe('2026-03-29T01:30:00.000Z');
    expect(until('until 02:30', Date.parse('2026-10-24T22:00:00Z'))).toBe('2026-10-25T00:30:00.000Z');
    expect(until('until 02:30', Date.parse('2026-10-25T00:45:00Z'))).toBe('2026-10-25T01:30:00.000Z');
  });

  it.each([
    '0m',
    '31d',
    '-5m',
    '5',
    '5s',
    '1h1h',
    'until',
    'until noon',
    'until 25:00',
    'until 18:00 tomorrow',
    'forever',
    '2h 3m',
    '1e3m',
  ])('of %j is refused with a sentence', (words) => {
    expect(() => until(words)).toThrow(/^[A-Z"].*\.$/);
  });
});

describe('a schedule', () => {
  const text = (words: string): string => parseSchedule(words).map(windowText).join('; ');

  it.each([
    ['mon-fri 22:00-07:00', 'mon-fri 22:00-07:00'],
    ['mon-fri 22:00-07:00, sat-sun 00:00-24:00', 'mon-fri 22:00-07:00; sat,sun 00:00-24:00'],
    ['mon,wed 9-17', 'mon,wed 09:00-17:00'],
    ['22:00–07:00', 'daily 22:00-07:00'],
    ['weekdays 12-13 22-7; weekends 0-24', 'mon-fri 12:00-13:00; mon-fri 22:00-07:00; sat,sun 00:00-24:00'],
    ['Fri-Mon 20:00-08:00', 'mon,fri-sun 20:00-08:00'],
    ['monday-wednesday 1:30-2:30', 'mon-wed 01:30-02:30'],
  ])('%j is %j', (words, read) => {
    expect(text(words)).toBe(read);
  });

  it.each([
    '',
    'mon-fri',
    'mon 25:00-07:00',
    'mon 24:00-07:00',
    'moonday 22:00-07:00',
    'mon 22:00',
    'mon-wed-fri 1-2',
    'constructor 1-2',
    Array(66).fill('1-2').join(' '),
  ])('%j is refused with a sentence', (words) => {
    expect(() => text(words)).toThrow(/^[A-Z"].*\.$/);
  });

  it('is parsed from its own text', () => {
    const window: fc.Arbitrary<Window> = fc.record({
      days: fc.subarray([...DAYS], { minLength: 1 }),
      from: fc.constantFrom('00:00', '07:05', '23:59'),
      to: fc.constantFrom('00:01', '12:00', '24:00'),
    });
    fc.assert(
      fc.property(fc.array(window, { minLength: 1, maxLength: 5 }), (windows) => {
        expect(parseSchedule(windows.map(windowText).join(', '))).toEqual(windows);
      }),
    );
  });

  it('is shown with the week ahead', () => {
    const windows = parseSchedule('mon-fri 22:00-07:00');
    const facts = scheduleFacts({ windows, timeZone: null }, BERLIN, NOW);
    expect(facts).toMatchObject({ time_zone: BERLIN, open_now: false, next_change_at: '2026-11-23T21:00:00.000Z' });
    expect(scheduleLines(facts, NOW)).toEqual([
      'Schedule (Europe/Berlin)',
      '  mon-fri 22:00-07:00',
      'Currently closed, until Mon 22:00.',
      'The next seven days',
      '  Mon 23 Nov 22:00 - Tue 24 Nov 07:00',
      '  Tue 24 Nov 22:00 - Wed 25 Nov 07:00',
      '  Wed 25 Nov 22:00 - Thu 26 Nov 07:00',
      '  Thu 26 Nov 22:00 - Fri 27 Nov 07:00',
      '  Fri 27 Nov 22:00 - Sat 28 Nov 07:00',
    ]);
  });
});

describe('a moment', () => {
  it('has the shortest text', () => {
    expect([5, 60 * 20, 60 * 24 * 30].map((minutes) => momentText(NOW + minutes * MINUTE, BERLIN, NOW))).toEqual([
      '10:35',
      'Mon 06:30',
      '22 Dec 10:30',
    ]);
  });
});

it('the longest schedule, as machines write it, fits into a message to the coordinator', () => {
  const times = Array.from({ length: 64 }, (_, index) => {
    const [hour, minute] = [Math.floor(index / 4), (index % 4) * 15].map((part) => String(part).padStart(2, '0'));
    return `${hour}:${minute}-${hour}:${String(Number(minute) + 5).padStart(2, '0')}`;
  });
  const windows = parseSchedule(times.map((time) => `mon,wed,thu,sat,sun ${time}`).join(', ')).map(windowText);
  expect(windows).toHaveLength(64);
  const schedule = { windows: windows.join(', '), time_zone: 'America/Argentina/ComodRivadavia' };
  const settings = { remote_control: true, pause: null, schedule, models: [], models_fixed: false };
  expect(Check(MachineSettingsSchema, settings)).toBe(true);
});
