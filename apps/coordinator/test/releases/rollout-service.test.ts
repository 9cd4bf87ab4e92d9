/** Offers and observations of machines, with a real database. */
import type { RolloutPolicy } from '@inference/formats';
import { describe, expect, it } from 'vitest';
import { RolloutRepository } from '../../src/database/rollout-repository.js';
import { type ConnectedMachine, fleetSums } from '../../src/releases/connected-machine.js';
import { JobOutcomes } from '../../src/releases/job-outcomes.js';
import { observeMachines } from '../../src/releases/machine-records.js';
import { rolloutPosition } from '../../src/releases/offer-policy.js';
import { RolloutChecks } from '../../src/releases/rollout-checks.js';
import { RolloutService } from '../../src/releases/rollout-service.js';
import { freshPostgres, freshSqlite } from '../support/fresh-database.js';
import { connected } from './connected-machine.js';

const MINUTE = 60_000;
const HOUR = 3_600_000;
const VERSION = '2.0.0';
const POLICY: RolloutPolicy = {
  mode: 'staged',
  stages: [{ percent: 100, soak_minutes: 43_200, min_machines: 0 }],
  max_updating_network_percent: 100,
  max_updating_cohort_percent: 100,
  owners_may_update_early: true,
  canary_accounts: [],
};
const ASK = { isCanary: false, isOwnerRequest: false, isCheck: false };

describe.each([
  ['SQLite', freshSqlite],
  ['PostgreSQL', freshPostgres],
] as const)('rollouts on %s', (_name, fresh) => {
  it('record the event during concurrent writes', async () => {
    const temporary = await fresh();
    const database = await temporary.open();
    let now = 1_800_000_000_000;
    const repository = new RolloutRepository(database);
    const errors: unknown[] = [];
    let local: ConnectedMachine[] = ['a', 'b', 'c'].map((name) => connected(name));
    const localMachines = () => local;
    const service = await RolloutService.open({
      repository,
      now: () => now,
      localMachines,
      onError: (error) => errors.push(error),
      onWrite: () => {},
    });
    try {
      await service.putPolicy(POLICY, 'key:1');
      await service.begin(['1.0.0']);
      await service.begin(['1.0.0', VERSION]);
      await repository.putFleet('one', JSON.stringify(fleetSums(local)), now);
      await service.refresh();

      // A blocked machine gets the version, but is not compared.
      expect(await service.offer(VERSION, { machine: connected('fake', { is_blocked: true }), ...ASK })).toBeNull();
      expect(await repository.machines(VERSION)).toEqual([]);
      expect(await service.offer(VERSION, { machine: connected('a'), ...ASK })).toBeNull();
      const rows = await repository.machines(VERSION);
      const observe = (machines: ConnectedMachine[]) =>
        observeMachines(
          VERSION,
          rows,
          new Map(machines.map((one) => [one.provider_id as string, one])),
          { since: now, byProvider: new Map() },
          now,
        ).changed;
      expect(observe([connected('new', { version: VERSION, is_blocked: true })])).toEqual([]);

      // A failure reported between a read and its write is not lost.
      await service.reportFailure(VERSION, connected('a'));
      await repository.observe(observe([connected('a', { trust: 1 })]), []);
      const stored = async () =>
        (await repository.machines(VERSION)).find(({ provider_id, part }) => provider_id === 'a' && part === 'updated');
      expect(await stored()).toMatchObject({ failed_at: now, trust: 1, trust_before: 2 });
      // Another offer between a read and its write is not lost either.
      const earlier = observe([connected('a', { trust: 0 })]);
      now += HOUR;
      expect(await service.offer(VERSION, { machine: connected('a'), ...ASK, isOwnerRequest: true })).toBeNull();
      await repository.observe(earlier, []);
      expect(await stored()).toMatchObject({ since: now, failed_at: null, trust: 2 });

      // An offer reads the machine itself, recent offers and recent controls.
      now += 3 * HOUR;
      expect(await service.offer(VERSION, { machine: connected('b'), ...ASK })).toBeNull();
      const read = async (providerId: string) => {
        const since = { controlsSince: now - HOUR, offeredSince: now - HOUR, connectedSince: now - 1, missingSince: now - HOUR };
        const relevant = { providerId, chipFamily: 'M4', ...since };
        const rows = await repository.changeMachines(VERSION, relevant, (_row, machines) => ({ result: machines, rows: [] }));
        return rows?.map(({ provider_id, part }) => `${part} ${provider_id}`).sort();
      };
      expect(await read('c')).toEqual(['control c', 'updated b']);
      expect(await read('a')).toEqual(['control c', 'updated a', 'updated b']);

      // A machine that returns after days is no longer missing.
      now += 48 * HOUR;
      local = [connected('a', { version: VERSION }), ...local.slice(1)];
      const checks = new RolloutChecks({
        database,
        repository,
        service,
        outcomes: new JobOutcomes(),
        localMachines,
        published: async () => ['1.0.0', VERSION],
        coordinatorId: 'one',
        now: () => now,
        onHalt: () => {},
        onStage: () => {},
      });
      await checks.run(0);
      expect(await stored()).toMatchObject({ seen_at: now, on_version_at: now, attempts: 0 });

      // A superseded version is observed for a day.
      await service.begin(['1.0.0', VERSION, '3.0.0']);
      expect(service.rows.get(VERSION)).toMatchObject({ state: 'paused', ended_at: now });
      await checks.run(0);
      expect(service.rows.get(VERSION)?.checked_at).toBe(now);
      now += 24 * HOUR;
      await checks.run(0);
      expect(service.rows.get(VERSION)?.checked_at).toBe(now - 24 * HOUR);
      expect(service.rows.get('3.0.0')?.checked_at).toBe(now);

      // Without a database, no machine is offered a version.
      expect(errors).toEqual([]);
      await database.destroy();
      expect(await service.offer('3.0.0', { machine: connected('b'), ...ASK })).toBe('capacity');
      await service.reportFailure('3.0.0', connected('b'));
      await service.tryBegin(['4.0.0']);
      expect(errors).toHaveLength(3);
    } finally {
      service.close();
      await temporary.remove();
    }
  });

  it('reserve the capacity of a machine that is offered the version again when it returns after an hour', async () => {
    const temporary = await fresh();
    const database = await temporary.open();
    const start = 1_800_000_000_000;
    let now = start;
    const errors: unknown[] = [];
    const repository = new RolloutRepository(database);
    const service = await RolloutService.open({
      repository,
      now: () => now,
      localMachines: () => [],
      onError: (error) => errors.push(error),
      onWrite: () => {},
    });
    const ask = (name: string) => service.offer(VERSION, { machine: connected(name), ...ASK });
    const since = async () => (await repository.offeredMachine(VERSION, 'a'))?.since;
    const see = () => repository.observe([], [{ version: VERSION, ids: ['a'], at: now }]);
    try {
      await service.putPolicy({ ...POLICY, max_updating_network_percent: 10, max_updating_cohort_percent: 10 }, 'key:1');
      await service.begin(['1.0.0']);
      await service.begin(['1.0.0', VERSION]);
      await repository.putFleet('one', JSON.stringify(fleetSums(['a', 'b', 'c'].map((name) => connected(name)))), now);
      await service.refresh();
      expect(await ask('a')).toBeNull();
      expect(await ask('b')).toBe('capacity');

      // The machine disconnects before the end of the offer, perhaps for its update.
      now = start + 57 * MINUTE;
      await see();
      now = start + 59 * MINUTE;
      expect(await ask('a')).toBeNull();
      expect(await since()).toBe(start);
      now = start + 62 * MINUTE;
      expect(await ask('b')).toBe('capacity');

      now = start + 66 * MINUTE;
      expect(await ask('a')).toBeNull();
      await see();
      expect(await since()).toBe(now);
      expect(await ask('b')).toBe('capacity');
      // Fails to update, and stays connected.
      now += HOUR;
      await see();
      expect(await ask('b')).toBeNull();
      expect(errors).toEqual([]);
    } finally {
      service.close();
      await database.destroy();
      await temporary.remove();
    }
  });

  it('repeat the offer of an owner request to a machine outside the stage', async () => {
    const temporary = await fresh();
    const database = await temporary.open();
    const errors: unknown[] = [];
    const service = await RolloutService.open({
      repository: new RolloutRepository(database),
      now: () => 1_800_000_000_000,
      localMachines: () => [],
      onError: (error) => errors.push(error),
      onWrite: () => {},
    });
    try {
      await service.putPolicy({ ...POLICY, stages: [{ percent: 1, soak_minutes: 43_200, min_machines: 0 }] }, 'key:1');
      await service.begin(['1.0.0']);
      await service.begin(['1.0.0', VERSION]);
      const names = Array.from({ length: 20 }, (_, index) => `mac-${index}`);
      // At least a tenth of a small chip family is in every stage.
      const machine = connected(names.find((name) => rolloutPosition(name, VERSION) > 0.1) ?? '');
      expect(await service.offer(VERSION, { machine, ...ASK })).toBe('later_stage');
      expect(await service.offer(VERSION, { machine, ...ASK, isOwnerRequest: true })).toBeNull();
      expect(await service.offer(VERSION, { machine, ...ASK })).toBeNull();
      await service.reportFailure(VERSION, machine);
      expect(await service.offer(VERSION, { machine, ...ASK })).toBe('failed_here');
      expect(errors).toEqual([]);
    } finally {
      service.close();
      await database.destroy();
      await temporary.remove();
    }
  });
});
