/** Checks per day of the served models, and the uptime computed from them. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { ModelAvailabilityRepository } from '../../src/database/model-availability-repository.js';
import type { Database } from '../../src/database/tables.js';
import { describeDatabases, type TestDatabase } from '../support/databases.js';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
/** Noon of a day. */
const NOON = Date.parse('2026-06-15T12:00:00Z');
const MIDNIGHT = Date.parse('2026-06-15T00:00:00Z');

describeDatabases('the availability of models', (fresh) => {
  let place: TestDatabase;
  let database: Database;
  let availability: ModelAvailabilityRepository;

  beforeEach(async () => {
    place = await fresh();
    database = await place.open();
    availability = new ModelAvailabilityRepository(database);
  });
  afterEach(async () => {
    await database.destroy();
    await place.remove();
  });

  const countRows = async (): Promise<number> => (await database.selectFrom('model_availability').select('model').execute()).length;

  it('is unknown before the first check', async () => {
    expect(await availability.read(NOON)).toEqual(new Map());
  });

  it('is the share of the checks since the first one with the model', async () => {
    await availability.record([], NOON);
    await availability.record(['a'], NOON + MINUTE_MS);
    await availability.record(['a', 'b'], NOON + 2 * MINUTE_MS);
    await availability.record(['b'], NOON + HOUR_MS);
    await availability.record(['a', 'b'], NOON + HOUR_MS + MINUTE_MS);
    const uptimes = await availability.read(NOON + HOUR_MS + MINUTE_MS);
    expect(uptimes.get('a')).toMatchObject({ share: 3 / 4, checks: 4, since: MIDNIGHT });
    expect(uptimes.get('b')).toMatchObject({ share: 1, checks: 3 });
  });

  it('has thirty days, without a share where nothing was checked', async () => {
    await availability.record(['a'], NOON);
    await availability.record([], NOON + DAY_MS);
    await availability.record(['a'], NOON + 3 * DAY_MS);
    const days = (await availability.read(NOON + 3 * DAY_MS)).get('a')?.days;
    expect(days).toHaveLength(30);
    expect(days?.slice(0, 26).every(({ share }) => share === null)).toBe(true);
    expect(days?.slice(26)).toEqual([
      { at: MIDNIGHT, share: 1 },
      { at: MIDNIGHT + DAY_MS, share: 0 },
      { at: MIDNIGHT + 2 * DAY_MS, share: null },
      { at: MIDNIGHT + 3 * DAY_MS, share: 1 },
    ]);
  });

  it('leaves the uptime after thirty days, and the database after ninety', async () => {
    await availability.record(['a', 'b'], NOON);
    await availability.record(['b'], NOON + 29 * DAY_MS);
    expect((await availability.read(NOON + 29 * DAY_MS)).get('a')?.share).toBe(0.5);
    await availability.record(['b'], NOON + 30 * DAY_MS);
    const uptimes = await availability.read(NOON + 30 * DAY_MS);
    expect(uptimes.get('a')).toBeUndefined();
    expect(uptimes.get('b')).toMatchObject({ share: 1, checks: 2 });
    const longer = await availability.read(NOON + 30 * DAY_MS, { days: 90, models: ['a'] });
    expect([...longer.keys()]).toEqual(['a']);
    expect(longer.get('a')).toMatchObject({ share: 1 / 3, checks: 3 });
    expect(longer.get('a')?.days).toHaveLength(90);
    await availability.record(['b'], NOON + 90 * DAY_MS);
    expect(await countRows()).toBe(6);
    expect((await availability.read(NOON + 90 * DAY_MS, { days: 90 })).get('a')).toBeUndefined();
  });

  it('lists the models that were served lately, and the most often served of a day first', async () => {
    await availability.record(['old', 'often', 'seldom'], NOON);
    await availability.record(['often'], NOON + DAY_MS);
    await availability.record(['often', 'seldom'], NOON + DAY_MS + MINUTE_MS);
    const recent = (options: { days: number; limit: number }) => availability.recentModels(NOON + DAY_MS + MINUTE_MS, options);
    expect(await recent({ days: 7, limit: 10 })).toEqual(['often', 'seldom', 'old']);
    expect(await recent({ days: 1, limit: 10 })).toEqual(['often', 'seldom']);
    expect(await recent({ days: 7, limit: 1 })).toEqual(['often']);
  });

  it('is recorded for a bounded number of names per day, first for names with a row', async () => {
    const names = (from: number) => Array.from({ length: 1600 }, (_, index) => `model-${from + index}`);
    await availability.record(names(0), NOON);
    await availability.record([...names(1600), 'model-0'], NOON + MINUTE_MS);
    expect(await countRows()).toBe(2001);
    const uptimes = await availability.read(NOON + MINUTE_MS);
    expect(uptimes.get('model-0')?.share).toBe(1);
    expect(uptimes.get('model-1')?.share).toBe(0.5);
    expect(uptimes.has('model-1999')).toBe(true);
    expect(uptimes.has('model-2000')).toBe(false);
  });
});
