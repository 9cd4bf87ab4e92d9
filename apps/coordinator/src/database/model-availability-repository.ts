/**
 * `ModelAvailabilityRepository`: uptime of models, from periodic checks of which models the network serves.
 *
 * Each row has, for a model and UTC day, the number of checks at which a provider served the model. The row with an empty model has the
 * number of all checks.
 */

import { DAY_MS } from '../time-units.js';
import type { Database } from './tables.js';

/** Default days of an uptime, including today. */
const DEFAULT_DAYS = 30;
export const RETAINED_DAYS = 90;
/** Model id of the rows that count all checks. No model has an empty id. */
const ALL_CHECKS = '';
/** Maximum rows per day, because providers could report ever new model names. */
const MAX_MODELS_PER_DAY = 2000;
const ROWS_PER_STATEMENT = 500;

/** Uptime of a model over the days that were read. "First seen" means within these days. */
export interface ModelUptime {
  /** Share of `checks` at which a provider served the model, from 0 to 1. */
  readonly share: number;
  /** Number of checks since the model was first seen. */
  readonly checks: number;
  /** Start of the day on which the model was first seen, in milliseconds since 1970. */
  readonly since: number;
  /** UTC days, oldest first. `at`: start of the day. `share`: null before the model was first seen, and on days without checks. */
  readonly days: readonly { readonly at: number; readonly share: number | null }[];
}

export class ModelAvailabilityRepository {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Records one check with the models that are served now. Only one coordinator at a time may call this function. */
  async record(models: readonly string[], now: number): Promise<void> {
    const day = Math.floor(now / DAY_MS);
    await this.#database.transaction().execute(async (transaction) => {
      await addCheck(transaction, [{ model: ALL_CHECKS, day, checks: 1, missed: 0 }]);
      const rows = await transaction.selectFrom('model_availability').select(['model', 'checks']).where('day', '=', day).execute();
      const checks = rows.find(({ model }) => model === ALL_CHECKS)?.checks ?? 1;
      const known = new Set(rows.map(({ model }) => model));
      const added = models.filter((model) => !known.has(model)).slice(0, Math.max(0, MAX_MODELS_PER_DAY + 1 - known.size));
      const served = [...models.filter((model) => known.has(model)), ...added];
      await addCheck(
        transaction,
        served.map((model) => ({ model, day, checks: 1, missed: checks - 1 })),
      );
      const isFirstOfDay = checks === 1;
      if (isFirstOfDay)
        await transaction
          .deleteFrom('model_availability')
          .where('day', '<=', day - RETAINED_DAYS)
          .execute();
    });
  }

  /** At most `limit` models served in the last `days` days. The most recently served come first, then those with the most checks. */
  async recentModels(now: number, { days, limit }: { readonly days: number; readonly limit: number }): Promise<string[]> {
    const rows = await this.#database
      .selectFrom('model_availability')
      .select(['model'])
      .where('day', '>', Math.floor(now / DAY_MS) - days)
      .where('model', '!=', ALL_CHECKS)
      .groupBy('model')
      .orderBy((select) => select.fn.max('day'), 'desc')
      .orderBy((select) => select.fn.sum('checks'), 'desc')
      .orderBy('model')
      .limit(limit)
      .execute();
    return rows.map(({ model }) => model);
  }

  /** Uptimes of the models that were served in the last `days` days, optionally only of `models`. */
  async read(
    now: number,
    { days = DEFAULT_DAYS, models }: { readonly days?: number; readonly models?: readonly string[] } = {},
  ): Promise<ReadonlyMap<string, ModelUptime>> {
    const today = Math.floor(now / DAY_MS);
    const all = this.#database.selectFrom('model_availability').select(['model', 'day', 'checks', 'missed']);
    const selected = models === undefined ? all : all.where('model', 'in', [ALL_CHECKS, ...models]);
    const rows = await selected
      .where('day', '>', today - days)
      .orderBy('day')
      .execute();
    const rowsByModel = new Map<string, DayRow[]>();
    for (const { model, ...row } of rows) {
      const known = rowsByModel.get(model);
      if (known === undefined) rowsByModel.set(model, [row]);
      else known.push(row);
    }
    const allChecks = new Map(rowsByModel.get(ALL_CHECKS)?.map(({ day, checks }) => [day, checks]));
    rowsByModel.delete(ALL_CHECKS);
    return new Map(Array.from(rowsByModel, ([model, served]) => [model, uptimeOf(served, allChecks, { today, days })]));
  }
}

interface DayRow {
  readonly day: number;
  /** Checks of the day at which the model was served. */
  readonly checks: number;
  /** Checks of the day before the first one at which the model was served. */
  readonly missed: number;
}

/** `served`: rows of the model, oldest first. `allChecks`: number of checks by day. */
function uptimeOf(
  served: readonly DayRow[],
  allChecks: ReadonlyMap<number, number>,
  { today, days: length }: { readonly today: number; readonly days: number },
): ModelUptime {
  const first = served[0] ?? { day: today, checks: 0, missed: 0 };
  const servedOn = new Map(served.map(({ day, checks }) => [day, checks]));
  const days = Array.from({ length }, (_, index) => {
    const day = today - (length - 1) + index;
    const checks = day < first.day ? 0 : (allChecks.get(day) ?? 0) - (day === first.day ? first.missed : 0);
    return { day, checks, served: servedOn.get(day) ?? 0 };
  });
  const checks = Math.max(
    1,
    days.reduce((sum, { checks }) => sum + checks, 0),
  );
  return {
    share: shareOf(
      days.reduce((sum, { served }) => sum + served, 0),
      checks,
    ),
    checks,
    since: first.day * DAY_MS,
    days: days.map(({ day, checks, served }) => ({ at: day * DAY_MS, share: checks === 0 ? null : shareOf(served, checks) })),
  };
}

function shareOf(served: number, checks: number): number {
  return Math.min(1, served / checks);
}

async function addCheck(
  transaction: Database,
  rows: readonly { readonly model: string; readonly day: number; readonly checks: number; readonly missed: number }[],
): Promise<void> {
  for (let start = 0; start < rows.length; start += ROWS_PER_STATEMENT) {
    await transaction
      .insertInto('model_availability')
      .values(rows.slice(start, start + ROWS_PER_STATEMENT))
      .onConflict((conflict) =>
        conflict.columns(['model', 'day']).doUpdateSet((set) => ({ checks: set('model_availability.checks', '+', 1) })),
      )
      .execute();
  }
}
