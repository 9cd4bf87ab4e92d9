/** Minutes per day in which components were reported by several coordinators of one database. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import {
  ComponentAvailabilityRepository,
  type ComponentMinutes,
  minutesPerDay,
} from '../../src/database/component-availability-repository.js';
import type { Database } from '../../src/database/tables.js';
import { describeDatabases, type TestDatabase } from '../support/databases.js';

const MINUTE_MS = 60_000;
const DAY_MS = 1440 * MINUTE_MS;
const NOON = Date.parse('2026-06-15T12:00:00Z');

describeDatabases('the availability of components', (fresh) => {
  let place: TestDatabase;
  let databases: Database[];

  beforeEach(async () => {
    place = await fresh();
    databases = [await place.open(), await place.open()];
  });
  afterEach(async () => {
    for (const database of databases) await database.destroy();
    await place.remove();
  });

  const read = async (): Promise<ComponentMinutes> => {
    const minutes = (await new ComponentAvailabilityRepository(databases[0] as Database).read()).get('api');
    if (minutes === undefined) throw new Error('nothing was reported');
    return minutes;
  };

  it('counts each minute once, for any number of reporting coordinators', async () => {
    const [one, other] = databases.map((database) => new ComponentAvailabilityRepository(database));
    await Promise.all([one?.report(['api'], NOON), other?.report(['api', 'console'], NOON)]);
    await one?.report(['api'], NOON + 20_000);
    await other?.report(['api'], NOON + 3 * MINUTE_MS);
    // A clock that lags behind adds nothing.
    await one?.report(['api'], NOON + 2 * MINUTE_MS);
    expect(minutesPerDay(await read(), NOON + 3 * MINUTE_MS, 2)).toEqual([
      { observed: 0, up: 0 },
      { observed: 4, up: 2 },
    ]);
    // The current minute is included only if it was reported.
    expect(minutesPerDay(await read(), NOON + 4 * MINUTE_MS, 1)).toEqual([{ observed: 4, up: 2 }]);
    expect(minutesPerDay(await read(), NOON + 6 * MINUTE_MS, 1)).toEqual([{ observed: 6, up: 2 }]);
  });

  it('counts a day without a report as down, from the first report on', async () => {
    const [repository] = databases.map((database) => new ComponentAvailabilityRepository(database));
    await repository?.report(['api'], NOON);
    await repository?.report(['api'], NOON + 2 * DAY_MS);
    expect(minutesPerDay(await read(), NOON + 2 * DAY_MS, 4)).toEqual([
      { observed: 0, up: 0 },
      { observed: 720, up: 1 },
      { observed: 1440, up: 0 },
      { observed: 721, up: 1 },
    ]);
    await repository?.prune(NOON + 401 * DAY_MS);
    expect([...(await read()).byDay.keys()]).toEqual([Math.floor(NOON / DAY_MS) + 2]);
  });
});
