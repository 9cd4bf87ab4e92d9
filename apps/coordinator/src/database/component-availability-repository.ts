/** `ComponentAvailabilityRepository`: in how many minutes of a day a coordinator reported a component of the status page as running. */

import { DAY_MS, MINUTE_MS } from '../time-units.js';
import type { Database } from './tables.js';

const MINUTES_PER_DAY = 1440;
/** Longer than the status page shows, so that a component is still known after a long outage. */
const RETAINED_DAYS = 400;

export interface ComponentMinutes {
  /** First and last minute with a stored report, in minutes since 1970. */
  readonly firstMinute: number;
  readonly lastMinute: number;
  /** Count of reported minutes by UTC day, in days since 1970. */
  readonly byDay: ReadonlyMap<number, number>;
}

export class ComponentAvailabilityRepository {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Records components as running now. A minute is counted once per component, even if several coordinators report it. */
  async report(components: readonly string[], now: number): Promise<void> {
    const minute = Math.floor(now / MINUTE_MS);
    const day = Math.floor(now / DAY_MS);
    const rows = components.map((component) => ({ component, day, minutes: 1, first_minute: minute, last_minute: minute }));
    if (rows.length === 0) return;
    await this.#database
      .insertInto('component_availability')
      .values(rows)
      .onConflict((conflict) =>
        conflict
          .columns(['component', 'day'])
          .doUpdateSet((set) => ({ minutes: set('component_availability.minutes', '+', 1), last_minute: minute }))
          .where('component_availability.last_minute', '<', minute),
      )
      .execute();
  }

  async prune(now: number): Promise<void> {
    const today = Math.floor(now / DAY_MS);
    await this.#database
      .deleteFrom('component_availability')
      .where('day', '<=', today - RETAINED_DAYS)
      .execute();
  }

  /** Key: component. */
  async read(): Promise<ReadonlyMap<string, ComponentMinutes>> {
    const rows = await this.#database.selectFrom('component_availability').selectAll().orderBy('day').execute();
    const components = new Map<string, { firstMinute: number; lastMinute: number; byDay: Map<number, number> }>();
    for (const { component, day, minutes, first_minute, last_minute } of rows) {
      const known = components.get(component) ?? { firstMinute: first_minute, lastMinute: last_minute, byDay: new Map<number, number>() };
      known.lastMinute = Math.max(known.lastMinute, last_minute);
      known.byDay.set(day, minutes);
      components.set(component, known);
    }
    return components;
  }
}

interface DayMinutes {
  /** Minutes of the day between the first report and now. Includes the current minute only if it was reported. */
  readonly observed: number;
  /** Minutes with a report. */
  readonly up: number;
}

/** Reported minutes of the last UTC days, oldest first, today last. */
export function minutesPerDay({ firstMinute, lastMinute, byDay }: ComponentMinutes, now: number, days: number): DayMinutes[] {
  const minute = Math.floor(now / MINUTE_MS);
  const today = Math.floor(now / DAY_MS);

  const end = lastMinute >= minute ? minute + 1 : minute;
  return Array.from({ length: days }, (_, index) => {
    const day = today - (days - 1) + index;
    const from = Math.max(day * MINUTES_PER_DAY, firstMinute);
    const to = Math.min((day + 1) * MINUTES_PER_DAY, end);
    const observed = Math.max(0, to - from);
    return { observed, up: Math.min(observed, byDay.get(day) ?? 0) };
  });
}
