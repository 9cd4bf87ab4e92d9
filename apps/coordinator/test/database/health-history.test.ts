/** Health history: figures are stored per coordinator in slots of three lengths, and expired rows are removed. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { HEALTH_SLOTS, HealthHistoryRepository } from '../../src/database/health-history-repository.js';
import type { Database } from '../../src/database/tables.js';
import { describeDatabases, type TestDatabase } from '../support/databases.js';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const START = 20_000 * DAY_MS;

describeDatabases('health history', (fresh) => {
  let place: TestDatabase;
  let database: Database;
  let history: HealthHistoryRepository;
  beforeAll(async () => {
    place = await fresh();
    database = await place.open();
    history = new HealthHistoryRepository(database, (stored, added) => JSON.stringify(JSON.parse(stored) + JSON.parse(added)));
  });
  afterAll(async () => {
    await database.destroy();
    await place.remove();
  });

  it('adds minutes up to ten minutes and hours, per coordinator', async () => {
    // The first part of a minute was stored at a shutdown.
    for (const minute of [0, 0, 1, 9, 10, 61]) await history.add('a', START + minute * MINUTE_MS, '1');
    await history.add('b', START + 5 * MINUTE_MS, '7');
    const read = async (seconds: 60 | 600 | 3600) =>
      (await history.read(seconds, START, START + DAY_MS)).map(({ slotAt, coordinator, figures }) => [
        (slotAt - START) / MINUTE_MS,
        coordinator,
        Number(figures),
      ]);
    expect(await read(60)).toEqual([
      [0, 'a', 2],
      [1, 'a', 1],
      [5, 'b', 7],
      [9, 'a', 1],
      [10, 'a', 1],
      [61, 'a', 1],
    ]);
    expect((await read(600)).sort()).toEqual([
      [0, 'a', 4],
      [0, 'b', 7],
      [10, 'a', 1],
      [60, 'a', 1],
    ]);
    expect((await read(3600)).sort()).toEqual([
      [0, 'a', 5],
      [0, 'b', 7],
      [60, 'a', 1],
    ]);
    expect(await history.read(60, START + MINUTE_MS, START + 9 * MINUTE_MS)).toHaveLength(2);
  });

  it('removes rows that no chart shows', async () => {
    const rows = async (): Promise<unknown> =>
      (await database.selectFrom('health_history').select('slot_seconds').orderBy('slot_seconds').execute()).map((row) => row.slot_seconds);
    await history.add('a', START + 3 * DAY_MS, '1');
    expect(await rows()).toEqual([60, 600, 3600, 3600, 3600, 3600]);
    await history.add('b', START + 30 * DAY_MS, '1');
    expect(await rows()).toEqual(HEALTH_SLOTS.map(({ seconds }) => seconds));
  });
});
