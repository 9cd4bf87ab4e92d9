/** `HealthHistoryRepository`: each coordinator's health figures for the operator's charts, in time slots of 1, 10 and 60 minutes. */
import type { Database } from './tables.js';

/** Length of the slots, and time for which their rows are retained: that of the longest chart with this resolution. */
export const HEALTH_SLOTS = [
  { seconds: 60, retainedMs: 2 * 3_600_000 },
  { seconds: 600, retainedMs: 26 * 3_600_000 },
  { seconds: 3600, retainedMs: 8 * 86_400_000 },
] as const;
export type HealthSlotSeconds = (typeof HEALTH_SLOTS)[number]['seconds'];

/** Maximum rows of one read. A chart needs one row per point and coordinator. */
const MAX_ROWS = 20_000;

interface HealthRow {
  readonly slotAt: number;
  readonly coordinator: string;
  /** `HealthFigures` as JSON. */
  readonly figures: string;
}

/** Combines the stored figures of a slot with added ones. All are JSON. */
type Merge = (stored: string, added: string) => string;

export class HealthHistoryRepository {
  readonly #database: Database;
  readonly #merge: Merge;

  constructor(database: Database, merge: Merge) {
    this.#database = database;
    this.#merge = merge;
  }

  /** Adds figures of a coordinator to the slots (one per length) that contain the time `at`. Also removes expired rows. */
  async add(coordinator: string, at: number, figures: string): Promise<void> {
    const write = async (transaction: Database): Promise<void> => {
      for (const { seconds, retainedMs } of HEALTH_SLOTS) {
        const slot = { coordinator, slot_seconds: seconds, slot_at: Math.floor(at / (seconds * 1000)) * seconds * 1000 };
        // No lock is needed between read and write, because each coordinator writes only its own rows.
        const stored = await transaction
          .selectFrom('health_history')
          .select('figures')
          .where('slot_seconds', '=', seconds)
          .where('slot_at', '=', slot.slot_at)
          .where('coordinator', '=', coordinator)
          .executeTakeFirst();
        const merged = stored === undefined ? figures : this.#merge(stored.figures, figures);
        await transaction
          .insertInto('health_history')
          .values({ ...slot, figures: merged })
          .onConflict((conflict) => conflict.columns(['slot_seconds', 'slot_at', 'coordinator']).doUpdateSet({ figures: merged }))
          .execute();
        await transaction
          .deleteFrom('health_history')
          .where('slot_seconds', '=', seconds)
          .where('slot_at', '<', at - retainedMs)
          .execute();
      }
    };
    await this.#database.transaction().execute(write);
  }

  /** Rows of slots that started in [from, to), oldest first. Times are in milliseconds since 1970. */
  async read(seconds: HealthSlotSeconds, from: number, to: number): Promise<HealthRow[]> {
    const rows = await this.#database
      .selectFrom('health_history')
      .select(['slot_at', 'coordinator', 'figures'])
      .where('slot_seconds', '=', seconds)
      .where('slot_at', '>=', from)
      .where('slot_at', '<', to)
      .orderBy('slot_at')
      .limit(MAX_ROWS)
      .execute();
    return rows.map(({ slot_at, coordinator, figures }) => ({ slotAt: Number(slot_at), coordinator, figures }));
  }
}
