/** Reputations survive a restart, on both databases, and are still forgotten with time. */
import type { ProviderId } from '@inference/protocol';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ReputationRepository } from '../../../src/database/providers/reputation-repository.js';
import type { Database } from '../../../src/database/tables.js';
import {
  afterAnswer,
  afterFault,
  afterSlowAnswer,
  CLEAN_REPUTATION,
  clampedToLimits,
  FIRST_QUARANTINE_MS,
  HALF_LIFE_MS,
  isClean,
  MAX_COOLDOWNS,
  MAX_PROBATION_MS,
  MAX_QUARANTINE_MS,
  QUARANTINE_FORGIVENESS_MS,
  type Reputation,
  recentFailures,
  stateAt,
} from '../../../src/providers/reputation/reputation.js';
import { ReputationStore } from '../../../src/providers/reputation/reputation-store.js';
import { describeDatabases, type TestDatabase } from '../../support/databases.js';
import { type Harness, startHarness, until } from '../../support/harness.js';
import type { ScriptedJob } from '../../support/scripted-provider.js';

const id = (name: string): ProviderId => name as ProviderId;
/** A timer of this length never fires during a test: writes happen on request. */
const NEVER = 2 ** 30;

describeDatabases('kept reputations', (fresh) => {
  let place: TestDatabase;
  let database: Database;
  const errors: unknown[] = [];
  let now = 0;
  const open = (): Promise<ReputationRepository> =>
    ReputationRepository.open({ database, now: () => now, onWriteError: (error) => void errors.push(error), writeEveryMs: NEVER });
  beforeEach(async () => {
    errors.length = 0;
    now = 1_700_000_000_000;
    place = await fresh();
    database = await place.open();
  });
  afterEach(async () => {
    await database.destroy();
    await place.remove();
  });

  it('come back unchanged, for every history', async () => {
    const store = await open();
    const reputations = new Map<string, Reputation>([
      ['failed', afterFault(CLEAN_REPUTATION, 'failed', 'engine_failed', now, 0.5)],
      ['late', afterSlowAnswer(CLEAN_REPUTATION, now + 0.25)],
      ['cooling', [1, 2, 3].reduce((before) => afterFault(before, 'timed_out', 'timeout_next_frame', now, 0.123), CLEAN_REPUTATION)],
      [
        'mended',
        afterAnswer(
          [1, 2, 3].reduce((before) => afterFault(before, 'lost', 'x', now, 0.9), CLEAN_REPUTATION),
          now,
        ),
      ],
      ['lied', afterFault(CLEAN_REPUTATION, 'unverified', 'receipt.model', now, 0.987)],
    ]);
    for (const [name, reputation] of reputations) store.put(id(name), reputation);
    store.put(id('gone'), afterFault(CLEAN_REPUTATION, 'failed', 'x', now, 0.5));
    await store.flush();
    now += 61_000;
    store.put(id('gone'), null);
    store.put(id('never'), null);
    await store.close();
    const again = await open();
    await again.close();
    const expected = [...reputations].map(([name, reputation]) => [name, { ...reputation, at: Math.round(reputation.at) }]);
    expect(Object.fromEntries(again.stored)).toEqual(Object.fromEntries(expected));
    expect(errors).toEqual([]);
  });

  it('are written in pieces, the newest of each key', async () => {
    const store = await open();
    for (let times = 0; times < 2; times++) {
      for (let index = 0; index < 1200; index++) store.put(id(`p${index}`), { ...CLEAN_REPUTATION, weight: 1 + times + index, at: 5 });
      if (times === 0) await store.flush();
    }
    await store.close();
    const again = await open();
    await again.close();
    expect(new Map(again.stored).size).toBe(1200);
    expect(new Map(again.stored).get(id('p1199'))?.weight).toBe(1201);
  });

  it('wait while the database fails, and unknown rows are left alone', async () => {
    const store = await open();
    store.put(id('a'), { ...CLEAN_REPUTATION, weight: 1, at: 1 });
    await database.schema.alterTable('provider_reputations').renameTo('elsewhere').execute();
    await store.flush();
    expect(errors).toHaveLength(1);
    await database.schema.alterTable('elsewhere').renameTo('provider_reputations').execute();
    await store.close();
    const row = await database.selectFrom('provider_reputations').selectAll().executeTakeFirstOrThrow();
    const strange = {
      ...row,
      provider_id: 'b',
      restraint_kind: 'exile',
      restraint_reason: 'unheard_of',
      restraint_since: 1,
      restraint_until: 2,
    };
    await database.insertInto('provider_reputations').values(strange).execute();
    const again = await open();
    await again.close();
    expect(again.stored).toEqual([['a', { ...CLEAN_REPUTATION, weight: 1, at: 1 }]]);
  });
});

describeDatabases('kept reputations of coordinators that share a database', (fresh, dialect) => {
  let place: TestDatabase;
  const open: (() => Promise<void>)[] = [];
  const now = 1_700_000_000_000;
  const lied = afterFault(CLEAN_REPUTATION, 'unverified', 'receipt.model', now, 0.5);
  const failed = afterFault(CLEAN_REPUTATION, 'failed', 'engine_failed', now, 0.5);
  const fail = (error: unknown): never => {
    throw error;
  };
  const start = async (clock = now) => {
    const database = await place.open();
    const kept = await ReputationRepository.open({ database, now: () => clock, onWriteError: fail, writeEveryMs: NEVER });
    const heard: [ProviderId, Reputation][] = [];
    kept.onChange = (...change) => void heard.push(change);
    open.push(async () => {
      await kept.close();
      await database.destroy();
    });
    return { kept, heard, database };
  };
  beforeEach(async () => {
    place = await fresh();
  });
  afterEach(async () => {
    for (const close of open.splice(0)) await close();
    await place.remove();
  });

  it('reach the other coordinators once, and own writes are not read back', async () => {
    const [one, other] = [await start(), await start()];
    one.kept.put(id('liar'), lied);
    await one.kept.flush();
    for (const { kept } of [one, other, other]) await kept.refresh();
    expect([one.heard, other.heard]).toEqual([[], [[id('liar'), lied]]]);
    other.kept.put(id('liar'), failed);
    await other.kept.flush();
    for (const { kept } of [one, other]) await kept.refresh();
    expect([one.heard, other.heard.length]).toEqual([[[id('liar'), failed]], 1]);
  });

  it('never undo unwritten changes, whether they wait when a read begins or arrive during it', async () => {
    const [one, other] = [await start(), await start()];
    one.kept.put(id('waits'), lied);
    one.kept.put(id('comes'), lied);
    await one.kept.flush();
    other.kept.put(id('waits'), failed);
    const reading = other.kept.refresh();
    other.kept.put(id('comes'), failed);
    await reading;
    expect(other.heard).toEqual([]);
    await other.kept.flush();
    await other.kept.refresh();
    await one.kept.refresh();
    expect([other.heard, Object.fromEntries(one.heard)]).toEqual([[], { waits: failed, comes: failed }]);
  });

  it('record a clearing; a reputation cleared by time alone never replaces a newer one', async () => {
    const [one, other] = [await start(), await start()];
    one.kept.put(id('a'), lied);
    await one.kept.flush();
    await other.kept.refresh();
    other.kept.put(id('a'), { ...CLEAN_REPUTATION, at: now });
    await other.kept.flush();
    await one.kept.refresh();
    expect(one.heard).toEqual([[id('a'), { ...CLEAN_REPUTATION, at: now }]]);
    // The other coordinator has just seen a false answer, which this one does not know of yet.
    other.kept.put(id('a'), lied);
    await other.kept.flush();
    one.kept.put(id('a'), null);
    await one.kept.flush();
    await one.kept.refresh();
    expect(one.heard.at(-1)).toEqual([id('a'), lied]);
  });

  // Coordinators never share an SQLite file, so no reread happens.
  if (dialect === 'postgres') {
    const coordinator = async (): Promise<Harness> => {
      const harness = await startHarness({ config: { databaseUrl: 'url' in place.target ? place.target.url : '' } });
      open.push(() => harness.close());
      return harness;
    };

    it('exclude a false answerer at every coordinator, and readmit one that an operator cleared at any', { timeout: 60_000 }, async () => {
      const [one, other] = [await coordinator(), await coordinator()];
      const liar = await one.provider({
        onJob: (job) => job.answerHonestly(undefined, { message: (message) => ({ ...message, response_sha256: '0'.repeat(64) }) }),
      });
      const { providerId, enclave } = liar;
      const stateOf = (harness: Harness) => harness.app.providers.reputations.summaryOf(providerId).state;
      expect((await one.chat()).status).toBe(502);
      liar.close();
      const elsewhere = await other.provider({ enclave });
      await other.until(() => stateOf(other) === 'quarantined' && elsewhere.standing?.status === 'quarantined');
      expect([(await other.chat()).status, elsewhere.jobs.size]).toEqual([503, 0]);
      // Sent to the coordinator to which the provider is not connected.
      const cleared = await one.post(`/admin/v1/providers/${providerId}/reinstate`, {}, { 'x-api-key': one.adminKey });
      expect(cleared.status).toBeLessThan(300);
      await other.until(() => stateOf(other) === 'well');
      expect([(await other.chat()).status, elsewhere.jobs.size]).toEqual([200, 1]);
      expect(stateOf(one)).toBe('well');
    });
  }

  it('are deleted without a restart after an operator cleared them, once the others had time to read them', async () => {
    let clock = now;
    const database = await place.open();
    const options = { database, now: () => clock, onWriteError: fail, writeEveryMs: NEVER, deleteEveryMs: 10 };
    const kept = await ReputationRepository.open(options);
    open.push(async () => {
      await kept.close();
      await database.destroy();
    });
    kept.put(id('old'), { ...CLEAN_REPUTATION, at: now });
    kept.put(id('faded'), failed);
    await kept.flush();
    clock += 2000;
    kept.put(id('new'), { ...CLEAN_REPUTATION, at: clock });
    await kept.flush();
    // Other coordinators may be unable to read the database for up to an hour.
    clock += 3_600_000 - 1000;
    const stored = async () =>
      (await database.selectFrom('provider_reputations').select('provider_id').execute()).map((row) => row.provider_id);
    await expect.poll(async () => (await stored()).sort()).toEqual(['faded', 'new']);
  });

  it('are also deleted in the database; cleared entries at the next start', async () => {
    const one = await start();
    one.kept.put(id('cleared'), { ...CLEAN_REPUTATION, at: now });
    one.kept.put(id('faded'), failed);
    await one.kept.flush();
    const later = await start(now + 2 * 60_000);
    expect(later.kept.stored.map(([name]) => name)).toEqual(['faded']);
    later.kept.put(id('faded'), null);
    await later.kept.flush();
    expect(await later.database.selectFrom('provider_reputations').selectAll().execute()).toEqual([]);
  });
});

describe('a store that loads persisted reputations', () => {
  const storeOf = (stored: readonly [ProviderId, Reputation][], now: number, max?: number) => {
    const put: [ProviderId, Reputation | null][] = [];
    const persistence = { stored, put: (...entry: (typeof put)[number]) => void put.push(entry) };
    const options = { now: () => now, random: () => 0.5, onChange: () => {}, persistence, ...(max === undefined ? {} : { max }) };
    return { put, store: new ReputationStore(options) };
  };
  const twice = [1, 2].reduce((before) => afterFault(before, 'failed', 'x', 1000, 0.5), CLEAN_REPUTATION);

  it('applies the decay since then, and drops expired reputations', () => {
    const { store, put } = storeOf([[id('a'), twice]], 1000 + HALF_LIFE_MS);
    expect(recentFailures(store.get(id('a')), 1000 + HALF_LIFE_MS)).toBe(1);
    store.close();
    // Closing the store deletes nothing.
    expect(put).toEqual([]);
    const later = storeOf([[id('a'), twice]], 1000 + 20 * HALF_LIFE_MS);
    expect([later.store.size, later.put]).toEqual([0, [[id('a'), null]]]);
    later.store.close();
  });

  it('drops the restriction of a provider that did not return', () => {
    const lied = afterFault(CLEAN_REPUTATION, 'unverified', 'receipt.model', 1000, 0.5);
    const expiry = (lied.restriction?.until ?? Number.NaN) + MAX_PROBATION_MS;
    const [before, after] = [storeOf([[id('a'), lied]], expiry - 1), storeOf([[id('a'), lied]], expiry)];
    expect([before.store.size, before.put]).toEqual([1, []]);
    expect([after.store.size, after.put]).toEqual([0, [[id('a'), null]]]);
    for (const { store } of [before, after]) store.close();
  });

  it('persists changes of a key, and its clearing', () => {
    const { store, put } = storeOf([], 1000);
    store.faulted(id('a'), 'unverified', 'receipt.model');
    expect(put.at(-1)).toEqual([id('a'), store.get(id('a'))]);
    expect(store.clear(id('a'))).toBe(true);
    // Written explicitly, because other coordinators must read it.
    expect(put.at(-1)).toEqual([id('a'), { ...CLEAN_REPUTATION, at: 1000 }]);
    store.close();
  });

  it('does not persist a reputation that was evicted at once', () => {
    const { store, put } = storeOf([], 1000, 1);
    store.faulted(id('a'), 'unverified', 'receipt.model');
    store.faulted(id('b'), 'failed', 'x');
    expect([store.size, put.at(-1)]).toEqual([1, [id('b'), null]]);
    store.close();
  });

  it('adopts reputations of another coordinator without writing them again', () => {
    const { store, put } = storeOf([], 1000);
    store.adopt(id('a'), afterFault(CLEAN_REPUTATION, 'unverified', 'receipt.model', 1000, 0.5));
    expect([stateAt(store.get(id('a')), 1000), put]).toEqual(['quarantined', []]);
    store.adopt(id('a'), { ...CLEAN_REPUTATION, at: 1000 });
    expect([stateAt(store.get(id('a')), 1000), store.size]).toEqual(['well', 0]);
    // A deletion could come before a third coordinator reads the row.
    expect(put).toEqual([]);
    store.close();
  });

  it('forgives counts without a maximum, as version 0.1.0 wrote them, as soon as others', () => {
    const now = 1000 * QUARANTINE_FORGIVENESS_MS;
    const stored = { ...CLEAN_REPUTATION, at: now, cooldowns: 500, cooldownsAt: now, quarantines: 500, quarantinesAt: now };
    const { store } = storeOf([[id('a'), stored]], now);
    expect(store.get(id('a'))).toMatchObject({ cooldowns: MAX_COOLDOWNS, quarantines: 20 });
    store.adopt(id('b'), stored);
    expect(store.get(id('b'))).toEqual(store.get(id('a')));
    expect(isClean(store.get(id('a')), now + 20 * QUARANTINE_FORGIVENESS_MS)).toBe(true);
    store.close();
  });

  it('restricts no provider longer than the maximum, for every clock that wrote the reputation', () => {
    fc.assert(
      fc.property(fc.integer({ min: -(10 ** 12), max: 10 ** 12 }), fc.integer({ min: 1, max: 20 }), (ahead, faults) => {
        const now = 1_700_000_000_000;
        let reputation: Reputation = CLEAN_REPUTATION;
        for (let fault = 0; fault < faults; fault++) reputation = afterFault(reputation, 'unverified', 'x', now + ahead, 0.9);
        const taken = clampedToLimits(reputation, now);
        expect(stateAt(taken, now + 1.25 * MAX_QUARANTINE_MS)).toBe('on_probation');
        expect(Math.max(taken.at, taken.restriction?.since ?? 0)).toBeLessThanOrEqual(now);
      }),
    );
  });
});

describe('a coordinator that starts again', () => {
  let harness: Harness;
  afterEach(() => harness.close());

  it('still restricts providers after false answers and failures, until they are forgiven', async () => {
    let ahead = 0;
    const options = { random: () => 0.5, now: () => Date.now() + ahead };
    harness = await startHarness(options);
    const { dataDir } = harness;
    const liar = await harness.provider({
      models: ['test/liar'],
      onJob: (job) => job.answerHonestly(undefined, { message: (message) => ({ ...message, response_sha256: '0'.repeat(64) }) }),
    });
    const broken = await harness.provider({ onJob: (job: ScriptedJob) => job.fail({ code: 'engine_failed' }) });
    expect((await harness.chat({ model: 'test/liar' })).status).toBe(502);
    for (let count = 0; count < 3; count++) expect((await harness.chat()).status).toBe(502);
    const before = [liar, broken].map(({ providerId }) => harness.app.providers.reputations.summaryOf(providerId));
    expect(before.map(({ state }) => state)).toEqual(['quarantined', 'cooling_down']);
    await harness.app.close(50);

    harness = await startHarness({ ...options, config: { dataDir } });
    const after = [liar, broken].map(({ providerId }) => harness.app.providers.reputations.summaryOf(providerId));
    expect(after.map(({ reason, detail, until }) => [reason, detail, until])).toEqual(
      before.map(({ reason, detail, until }) => [reason, detail, until]),
    );
    const back = await harness.provider({ enclave: liar.enclave, models: ['test/liar'] });
    await until(() => back.standing?.status === 'quarantined');
    expect((await harness.chat({ model: 'test/liar' })).status).toBe(503);
    const reinstate = await harness.post(`/admin/v1/providers/${broken.providerId}/reinstate`, {}, { 'x-api-key': harness.adminKey });
    expect(reinstate.status).toBeLessThan(300);
    back.close();
    await harness.app.close(50);

    ahead = FIRST_QUARANTINE_MS + 1;
    harness = await startHarness({ ...options, config: { dataDir } });
    expect([liar, broken].map(({ providerId }) => harness.app.providers.reputations.summaryOf(providerId).state)).toEqual([
      'on_probation',
      'well',
    ]);
  });
});
