/** `HealthHistoryRepository`: figures of coordinators by minute, ten minutes and hour, each retained as long as a chart needs them. */
import type { Database } from './tables.js';

/** Lengths of slots in seconds, and how long their rows are retained in milliseconds. */
export const HEALTH_SLOTS = [
  { seconds: 60, retainedMs: 2 * 3_600_000 },
  { seconds: 600, retainedMs: 26 * 3_600_000 },
  { seconds: 3600, retainedMs: 8 * 86_400_000 },
] as const;
export type HealthSlotSeconds = (typeof HEALTH_SLOTS)[number]['seconds'];

/** Maximum rows of one read: the points of a chart times the coordinators that ran meanwhile. */
const MAX_ROWS = 20_000;

interface HealthRow {
  readonly slotAt: number;
  readonly coordinator: string;
  /** JSON. */
  readonly figures: string;
}

/** Adds JSON of figures to stored JSON. */
type Merge = (stored: string, added: string) => string;

export class HealthHistoryRepository {
  readonly #database: Database;
  readonly #merge: Merge;

  constructor(database: Database, merge: Merge) {
    this.#database = database;
    this.#merge = merge;
  }

  /** Adds figures of a coordinator to the slots of every length that contain the time. Also removes expired rows. */
  async add(coordinator: string, at: number, figures: string): Promise<void> {
    const write = async (transaction: Database): Promise<void> => {
      for (const { seconds, retainedMs } of HEALTH_SLOTS) {
        const slot = { coordinator, slot_seconds: seconds, slot_at: Math.floor(at / (seconds * 1000)) * seconds * 1000 };
        // Only this coordinator writes its rows, so nothing changes between read and write.
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

  /** Rows of slots that began from `from` to before `to`, oldest first. */
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
