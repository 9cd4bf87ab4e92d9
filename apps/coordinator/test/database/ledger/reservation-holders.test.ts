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
      .values({
        ...{ job_id: 'job', account_id: 'account', api_key_id: 'key', model: 'model', endpoint: '/v1/chat/completions' },
        ...{ state: 'reserved', amount: 1, price_id: 'price', prompt_per_million: 1, completion_per_million: 1, per_image: 0 },
        ...{ max_prompt_tokens: 1, max_completion_tokens: 1, max_images: 0, holder: 'other', reserved_at: 1, ended_at: null },
        ...{ provider_id: null, earner: null, prompt_tokens: 0, completion_tokens: 0, hidden_tokens: 0, cached_tokens: 0 },
        ...{ images: 0, cost: 0, earned: 0, fee: 0 },
      })
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
      // A clock far off: on PostgreSQL the database's clock counts.
      await recordHolder(database, id, 5);
    }
  };

  if (dialect === 'postgres')
    it('are dead after 20 seconds of the database, for a coordinator without pauses of its own', async () => {
      await recordHolder(database, 'other', 7);
      await recordHolder(database, 'self', 9);
      expect(await abandonedJobs(database, 'self')).toEqual([]);
      await setAge('other', HOLDER_TIMEOUT_MS + 1000);
      // All may have paused with the database.
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
