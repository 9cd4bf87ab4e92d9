/** Health checks of load balancers: liveness and readiness. */
import { sql } from 'kysely';
import { expect, it } from 'vitest';
import { type DatabaseState, databaseState } from '../../../src/database/connection/database-state.js';
import { createLog } from '../../../src/log.js';
import { createHttpServer } from '../../../src/routes/plugins/server.js';
import { addHealth } from '../../../src/routes/system/health.js';
import { describeDatabases } from '../../support/databases.js';

interface Ready {
  readonly status: string;
  readonly reason: string | null;
  readonly checks: Readonly<Record<string, unknown>>;
}

async function server(facts: { isDraining: boolean; state: DatabaseState; asked?: () => void }) {
  const log = createLog('silent', { write: () => {} });
  const isDraining = (): boolean => facts.isDraining;
  const limits = { maxRequestBytes: 1000, maxHeldBytes: 1000, isFunded: () => true };
  const made = await createHttpServer({
    ...limits,
    cors: false,
    now: () => 0,
    trustedProxies: [],
    log,
    isDraining,
    isRefusing: isDraining,
  });
  let clock = 0;
  const database = async (): Promise<DatabaseState> => {
    facts.asked?.();
    return facts.state;
  };
  addHealth(made, { isDraining: isDraining, database, now: () => clock });
  return {
    ask: async (path: string) => {
      const { statusCode, body } = await made.inject(path);
      return [statusCode, JSON.parse(body) as Ready] as const;
    },
    pass: (ms: number) => {
      clock += ms;
    },
  };
}

it('is ready while the database responds, and names the reason otherwise', async () => {
  const facts = { isDraining: false, state: 'ok' as DatabaseState };
  const { ask, pass } = await server(facts);
  expect(await ask('/health/ready')).toEqual([
    200,
    { status: 'ready', reason: null, checks: { database: 'ok', migrations: 'ok', draining: false } },
  ]);
  pass(1000);
  facts.state = 'unreachable';
  expect((await ask('/health/ready'))[1]).toMatchObject({ status: 'not_ready', reason: 'database_unreachable' });
  pass(1000);
  facts.state = 'migrations_missing';
  expect(await ask('/health/ready')).toMatchObject([503, { reason: 'database_migrations_missing', checks: { migrations: 'missing' } }]);
  pass(1000);
  facts.state = 'too_new';
  expect(await ask('/health/ready')).toMatchObject([503, { reason: 'database_too_new', checks: { migrations: 'too_new' } }]);
});

it('is alive, but not ready, during a shutdown', async () => {
  const { ask } = await server({ isDraining: true, state: 'ok' });
  expect((await ask('/health'))[0]).toBe(200);
  expect(await ask('/health/ready')).toMatchObject([503, { reason: 'draining', checks: { database: 'ok', draining: true } }]);
  expect((await ask('/anything'))[0]).toBe(503);
});

it('caches the database state', async () => {
  let asked = 0;
  const { ask, pass } = await server({ isDraining: false, state: 'ok', asked: () => asked++ });
  for (let request = 0; request < 5; request++) await ask('/health/ready');
  expect(asked).toBe(1);
  pass(1000);
  await ask('/health/ready');
  expect(asked).toBe(2);
  // The clock is set back.
  pass(-3_600_000);
  await ask('/health/ready');
  expect(asked).toBe(3);
});

describeDatabases('the state of a database', (fresh) => {
  it('depends on its response and its migrations', async () => {
    const place = await fresh();
    const database = await place.open();
    expect(await databaseState(database, 10_000)).toBe('ok');
    await sql`delete from schema_migrations where name = '0020_devices'`.execute(database);
    expect(await databaseState(database, 10_000)).toBe('migrations_missing');
    await sql`drop table schema_migrations`.execute(database);
    expect(await databaseState(database, 10_000)).toBe('migrations_missing');
    await database.destroy();
    expect(await databaseState(database, 10_000)).toBe('unreachable');
    await place.remove();
  });
});
