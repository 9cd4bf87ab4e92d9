import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import {
  abandonedJobs,
  HOLDER_HEARTBEAT_MS,
  HOLDER_TIMEOUT_MS,
  recordHolder,
  removeHolder,
} from '../../../src/database/ledger/reservation-holders.js';
import type { Database } from '../../../src/database/tables.js';
import { describeDatabases, type TestDatabase } from '../../support/databases.js';
import { settledJob } from '../../support/settled-job.js';

describeDatabases('holders of reservations', (fresh, dialect) => {
  let place: TestDatabase;
  let database: Database;
  let time = 1_000_000;

  beforeAll(async () => {
    place = await fresh();
    database = await place.open();
    vi.spyOn(performance, 'now').mockImplementation(() => time);
    await database
      .insertInto('jobs')
      .values(settledJob({ job_id: 'job', account_id: 'account', state: 'reserved', holder: 'other', reserved_at: 1, ended_at: null }))
      .execute();
  });
  afterAll(async () => {
    vi.restoreAllMocks();
    await database.destroy();
    await place.remove();
  });

  const setAge = (id: string, ms: number): Promise<unknown> =>
    database
      .updateTable('ledger_holders')
      .set((set) => ({ seen_at: set('seen_at', '-', ms) }))
      .where('id', '=', id)
      .execute();
  const beatFor = async (id: string, ms: number): Promise<void> => {
    for (let passed = 0; passed <= ms; passed += HOLDER_HEARTBEAT_MS) {
      time += HOLDER_HEARTBEAT_MS;
      // `now` is wrong on purpose, because on PostgreSQL the database's clock is used.
      await recordHolder(database, id, 5);
    }
  };

  if (dialect === 'postgres')
    it('are dead after 20 seconds of the database, for a coordinator without pauses of its own', async () => {
      await recordHolder(database, 'other', 7);
      await recordHolder(database, 'self', 9);
      expect(await abandonedJobs(database, 'self')).toEqual([]);
      await setAge('other', HOLDER_TIMEOUT_MS + 1000);
      // Not abandoned: other heartbeats may have paused together with this coordinator's.
      expect(await abandonedJobs(database, 'self')).toEqual([]);
      await beatFor('self', HOLDER_TIMEOUT_MS);
      expect(await abandonedJobs(database, 'self')).toEqual(['job']);
      time += 60_000;
      await recordHolder(database, 'self', 9);
      expect(await abandonedJobs(database, 'self')).toEqual([]);
      await beatFor('self', HOLDER_TIMEOUT_MS);
      await recordHolder(database, 'other', 7);
      expect(await abandonedJobs(database, 'self')).toEqual([]);
      await removeHolder(database, 'other');
      expect(await abandonedJobs(database, 'self')).toEqual(['job']);
    });

  if (dialect === 'sqlite')
    it('are dead when another process has opened the file', async () => {
      await recordHolder(database, 'other', 7);
      expect(await abandonedJobs(database, 'self')).toEqual(['job']);
      expect(await abandonedJobs(database, 'other')).toEqual([]);
    });
});
