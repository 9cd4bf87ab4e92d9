/** Converts schedules from and to the text form that owners type: `mon-fri 22:00-07:00, sat-sun 00:00-24:00`. */
import { DAYS, type Day, minuteOf, type Window } from './policy.js';

const GROUPS: ReadonlyMap<string, readonly Day[]> = new Map([
  ['daily', [...DAYS]],
  ['weekdays', ['mon', 'tue', 'wed', 'thu', 'fri']],
  ['weekends', ['sat', 'sun']],
]);
const LONG_DAYS = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday'] as const;
const MAX_WINDOWS = 64;

/**
 * Parses a schedule. Days apply to all following times, until other days follow. Times before any days apply to every day.
 *
 * @throws Error with a sentence for the owner.
 */
export function parseSchedule(text: string): Window[] {
  const windows: Window[] = [];
  let days: Day[] = [...DAYS];
  /** Days that replace `days` when a time follows. */
  let newDays: Day[] = [];
  for (const word of text
    .toLowerCase()
    .replaceAll(/[–—]/g, '-')
    .split(/[\s,;]+/)) {
    if (word === '') continue;
    const times = /^(\d{1,2})(?::(\d\d))?-(\d{1,2})(?::(\d\d))?$/.exec(word);
    if (times === null) {
      newDays.push(...daysOf(word));
      continue;
    }
    if (newDays.length > 0) days = DAYS.filter((day) => newDays.includes(day));
    newDays = [];
    const [, fromHour = '', fromMinute = '00', toHour = '', toMinute = '00'] = times;
    const [from, to] = [`${fromHour.padStart(2, '0')}:${fromMinute}`, `${toHour.padStart(2, '0')}:${toMinute}`];
    if (minuteOf(from) === null || minuteOf(to) === null || from === '24:00') {
      throw new Error(`${JSON.stringify(word)} is not a time range; use for example 22:00-07:00.`);
    }
    windows.push({ days, from, to });
  }
  if (newDays.length > 0) throw new Error(`After ${newDays.at(-1)} a time is missing, such as 22:00-07:00.`);
  if (windows.length === 0) throw new Error('The schedule is empty; use for example "mon-fri 22:00-07:00", or use "schedule clear".');
  if (windows.length > MAX_WINDOWS) throw new Error(`A schedule has at most ${MAX_WINDOWS} windows.`);
  return windows;
}

/** For example `mon-fri 22:00-07:00`. */
export function windowText({ days, from, to }: Window): string {
  return `${daysText(days)} ${from}-${to}`;
}

function daysOf(word: string): readonly Day[] {
  const group = GROUPS.get(word);
  if (group !== undefined) return group;
  const [first = '', last = first, more] = word.split('-');
  const [from, to] = [dayIndex(first), dayIndex(last)];
  if (from < 0 || to < 0 || more !== undefined) {
    throw new Error(`${JSON.stringify(word)} is neither a day nor a time; use for example "mon-fri 22:00-07:00".`);
  }
  const count = ((to - from + 7) % 7) + 1;
  return Array.from({ length: count }, (_, index) => DAYS[(from + index) % 7] as Day);
}

function dayIndex(name: string): number {
  const short = DAYS.indexOf(name as Day);
  return short >= 0 ? short : LONG_DAYS.indexOf(name as (typeof LONG_DAYS)[number]);
}

/** Three or more days in a row are written as a range. */
function daysText(days: readonly Day[]): string {
  if (days.length === 7) return 'daily';
  const indices = DAYS.flatMap((day, index) => (days.includes(day) ? [index] : []));
  const runs: number[][] = [];
  for (const index of indices) {
    const run = runs.at(-1);
    if (run !== undefined && run.at(-1) === index - 1) run.push(index);
    else runs.push([index]);
  }
  const name = (index = 0): string => DAYS[index] ?? '';
  return runs.map((run) => (run.length > 2 ? `${name(run[0])}-${name(run.at(-1))}` : run.map(name).join(','))).join(',');
}
