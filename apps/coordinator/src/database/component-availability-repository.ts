/** `ComponentAvailabilityRepository`: minutes in which at least one coordinator reported a component as running, counted per day. */
import type { Database } from './tables.js';

const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;
const MINUTES_PER_DAY = 1440;
/** Rows outlive the displayed days, so that a long outage does not move the start of the records. */
const RETAINED_DAYS = 400;

export interface ComponentMinutes {
  /** First and last minute with a report, since 1970, within the retention. */
  readonly firstMinute: number;
  readonly lastMinute: number;
  /** Reported minutes by UTC day since 1970. */
  readonly byDay: ReadonlyMap<number, number>;
}

export class ComponentAvailabilityRepository {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Reports that these components run. Coordinators report independently; each minute counts once per component. */
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

interface DayOfMinutes {
  /** Minutes since the first report that have ended, or in which there was a report. */
  readonly observed: number;
  readonly up: number;
}

/** One entry per UTC day, the oldest first, today last. */
export function minutesPerDay({ firstMinute, lastMinute, byDay }: ComponentMinutes, now: number, days: number): DayOfMinutes[] {
  const minute = Math.floor(now / MINUTE_MS);
  const today = Math.floor(now / DAY_MS);
  // The running minute counts only once it has a report.
  const end = lastMinute >= minute ? minute + 1 : minute;
  return Array.from({ length: days }, (_, index) => {
    const day = today - (days - 1) + index;
    const from = Math.max(day * MINUTES_PER_DAY, firstMinute);
    const to = Math.min((day + 1) * MINUTES_PER_DAY, end);
    const observed = Math.max(0, to - from);
    return { observed, up: Math.min(observed, byDay.get(day) ?? 0) };
  });
}
