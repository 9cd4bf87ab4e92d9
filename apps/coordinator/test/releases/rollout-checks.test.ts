import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { RolloutRepository } from '../../src/database/rollout-repository.js';
import { createLog } from '../../src/log.js';
import type { ProviderRegistry } from '../../src/providers/provider-registry.js';
import type { ConnectedMachine } from '../../src/releases/connected-machine.js';
import { JobOutcomes } from '../../src/releases/job-outcomes.js';
import { newRow, observeMachines } from '../../src/releases/machine-records.js';
import { RolloutChecks } from '../../src/releases/rollout-checks.js';
import { RolloutService } from '../../src/releases/rollout-service.js';
import { Metrics } from '../../src/telemetry/metrics.js';
import { openReleases } from '../../src/wiring/releases.js';
import { createStartContext } from '../../src/wiring/start-context.js';
import { freshSqlite } from '../support/fresh-database.js';
import { connected } from './connected-machine.js';

const MINUTE = 60_000;

afterEach(() => {
  vi.useRealTimers();
});

it('starts no further check while one waits for the database', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const test = await freshSqlite();
  const connection = await test.open();
  let beforeResult = async (): Promise<void> => {};
  const database = connection.withPlugin({
    transformQuery: ({ node }) => node,
    transformResult: async ({ result }) => {
      await beforeResult();
      return result;
    },
  });
  const file = join(temporaryDirectory('rollouts'), 'releases.json');
  writeFileSync(file, JSON.stringify({ releases: [] }));
  let checks = 0;
  const snapshots = () => {
    checks++;
    return [];
  };
  const context = createStartContext({
    log: createLog('silent', { write: () => {} }),
    config: { agentReleases: file, cluster: null, dataDir: '/nowhere' },
    rolloutCheckMs: MINUTE,
  } as unknown as Parameters<typeof createStartContext>[0]);
  const registry = { snapshots } as unknown as ProviderRegistry;
  await openReleases(context, { database, registry, outcomes: new JobOutcomes(), metrics: new Metrics() });
  let resume = (): void => {};
  const hanging = new Promise<void>((resolve) => {
    resume = resolve;
  });
  beforeResult = () => hanging;
  vi.advanceTimersByTime(60 * MINUTE);
  resume();
  await context.disposal.close();
  expect(checks).toBe(1);
  await connection.destroy();
  await test.remove();
});

describe('observed outcomes', () => {
  const machine = connected('mac', { version: '2.0.0' });
  const machines = new Map([['mac', machine]]);

  it.each([
    ['updated', 'from before the update', 199, 0],
    ['updated', 'since the update', 200, 3],
    ['control', 'from before the sample', 99, 0],
    ['control', 'since the sample', 100, 3],
  ] as const)('count for a machine (%s) if they are %s', (part, _when, since, attempts) => {
    const row = { ...newRow('2.0.0', part, machine, 100), on_version_at: part === 'updated' ? 200 : null };
    const counts = { since, byProvider: new Map([['mac', { attempts: 3, failures: 1 }]]) };
    const { changed } = observeMachines('2.0.0', [row], machines, counts, 300);
    const observed = changed.find((one) => one.part === part) ?? row;
    expect(observed.attempts).toBe(attempts);
  });

  it('are stored for all versions of a machine in one statement', async () => {
    const test = await freshSqlite();
    const database = await test.open();
    const ids = Array.from({ length: 150 }, (_, index) => `mac-${String(index).padStart(3, '0')}`);
    const rows = ids.flatMap((id) => {
      const one = { ...machine, provider_id: id as ConnectedMachine['provider_id'] };
      return ['1.0.0', '2.0.0', '3.0.0'].map((version) => newRow(version, 'control', one, 0));
    });
    const stored: string[] = [];
    await new RolloutRepository(database).observe(rows, [], (providerIds) => stored.push(...new Set(providerIds)));
    expect(stored).toEqual(ids);
    const { count } = await database
      .selectFrom('rollout_machines')
      .select((select) => select.fn.countAll<number>().as('count'))
      .executeTakeFirstOrThrow();
    expect(count).toBe(rows.length);
    await database.destroy();
    await test.remove();
  });
});

it.each([
  ['before its write', 'InsertQueryNode', 'rollout_machines'],
  ['after its write', 'UpdateQueryNode', 'rollout_machines'],
  ['at the first write', 'InsertQueryNode', 'rollout_fleets'],
])('counts the outcomes of a minute once, although the database failed %s', async (_when, kind, table) => {
  const test = await freshSqlite();
  const connection = await test.open();
  let isFailing = false;
  const database = connection.withPlugin({
    transformQuery: ({ node }) => {
      if (isFailing && node.kind === kind && JSON.stringify(node).includes(`"${table}"`)) throw new Error('disk full');
      return node;
    },
    transformResult: async ({ result }) => result,
  });
  let now = 1_800_000_000_000;
  const repository = new RolloutRepository(database);
  const late = connected('late');
  const localMachines = () => [connected('busy', { version: '2.0.0' }), connected('idle', { version: '2.0.0' }), late];
  const published = ['1.0.0'];
  const onWrite = (): void => {};
  const service = await RolloutService.open({ repository, now: () => now, localMachines, onError: () => {}, onWrite });
  const outcomes = new JobOutcomes();
  const checks = new RolloutChecks({
    database,
    repository,
    service,
    outcomes,
    localMachines,
    published: async () => published,
    coordinatorId: 'one',
    now: () => now,
    onHalt: () => {},
    onStage: () => {},
  });
  await checks.run(0);
  published.push('2.0.0');
  await checks.run(0);
  now += MINUTE;
  for (const hasFailed of [false, true, false]) outcomes.record('busy', hasFailed);
  outcomes.record('late', true);
  isFailing = true;
  await expect(checks.run(0)).rejects.toThrow('disk full');
  isFailing = false;
  // A control that was sampled after its outcome.
  await connection
    .insertInto('rollout_machines')
    .values(newRow('2.0.0', 'control', late, now))
    .execute();
  now += MINUTE;
  outcomes.record('busy', true);
  await checks.run(0);
  const row = async (name: string) => (await repository.machines('2.0.0')).find(({ provider_id }) => provider_id === name);
  expect(await row('busy')).toMatchObject({ attempts: 4, failures: 2 });
  expect(await row('late')).toMatchObject({ attempts: 0, failures: 0 });
  now += MINUTE;
  outcomes.record('late', true);
  await checks.run(0);
  expect(await row('late')).toMatchObject({ attempts: 1, failures: 1 });
  await service.close();
  await connection.destroy();
  await test.remove();
});
