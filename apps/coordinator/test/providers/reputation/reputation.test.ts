/** Consequences of failures: the rules in virtual time, the stored reputations, and what providers and clients see. */
import type { ProviderId } from '@inference/protocol';
import { RESTRICTION_REASONS } from '@inference/protocol';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { schedule, withProbe } from '../../../../../packages/scheduler/src/index.js';
import { anyone, NOW, poolOf, provider } from '../../../../../packages/scheduler/test/providers.js';
import {
  afterAnswer,
  afterFault,
  afterSlowAnswer,
  CLEAN_REPUTATION,
  COOLDOWN_FORGIVENESS_MS,
  type Fault,
  FIRST_COOLDOWN_MS,
  FIRST_QUARANTINE_MS,
  HALF_LIFE_MS,
  isClean,
  MAX_COOLDOWNS,
  MAX_PROBATION_MS,
  MAX_QUARANTINE_MS,
  nextChangeAt,
  QUARANTINE_FORGIVENESS_MS,
  type Reputation,
  recentFailures,
  stateAt,
} from '../../../src/providers/reputation/reputation.js';
import { ReputationStore } from '../../../src/providers/reputation/reputation-store.js';
import { errorOf, type Harness, startHarness, until } from '../../support/harness.js';
import type { ScriptedJob } from '../../support/scripted-provider.js';

/** The middle of the jitter. */
const MIDDLE = 0.5;
const fail = (before: Reputation, now: number, fault: Fault = 'failed', times = 1): Reputation => {
  let after = before;
  for (let count = 0; count < times; count++) after = afterFault(after, fault, 'code', now, MIDDLE);
  return after;
};
const lengthOf = ({ restriction }: Reputation): number => (restriction === null ? 0 : restriction.until - restriction.since);

describe('failures', () => {
  it('cost a penalty, then lead to a cooldown, after which one job decides', () => {
    const [once, thrice] = [fail(CLEAN_REPUTATION, 0), fail(CLEAN_REPUTATION, 0, 'failed', 3)];
    expect([stateAt(once, 0), recentFailures(once, 0)]).toEqual(['well', 1]);
    expect(thrice.restriction).toMatchObject({ kind: 'cooldown', reason: 'jobs_failed', detail: 'code' });
    expect([stateAt(thrice, 0), stateAt(thrice, FIRST_COOLDOWN_MS - 1), stateAt(thrice, FIRST_COOLDOWN_MS)]).toEqual([
      'cooling_down',
      'cooling_down',
      'on_probation',
    ]);
    const well = afterAnswer(thrice, FIRST_COOLDOWN_MS);
    expect([stateAt(well, FIRST_COOLDOWN_MS), recentFailures(well, FIRST_COOLDOWN_MS)]).toEqual(['well', 0]);
    const again = fail(thrice, FIRST_COOLDOWN_MS);
    expect([stateAt(again, FIRST_COOLDOWN_MS), lengthOf(again)]).toEqual(['cooling_down', 2 * FIRST_COOLDOWN_MS]);
  });

  it('of jobs that ran when the cooldown began do not extend it', () => {
    const thrice = fail(CLEAN_REPUTATION, 0, 'failed', 3);
    expect(fail(thrice, 1, 'timed_out', 20)).toBe(thrice);
  });

  it('consecutive cooldowns end in a quarantine, which also ends with one job and doubles up to a day', () => {
    let reputation = fail(CLEAN_REPUTATION, 0, 'timed_out', 3);
    let now = 0;
    const lengths: number[] = [];
    for (let probe = 0; probe < 20; probe++) {
      lengths.push(lengthOf(reputation));
      now = reputation.restriction?.until ?? Number.NaN;
      expect(stateAt(reputation, now)).toBe('on_probation');
      reputation = fail(reputation, now, 'timed_out');
    }
    expect(lengths.slice(0, MAX_COOLDOWNS)).toEqual([1, 2, 4, 8, 16, 32].map((times) => times * FIRST_COOLDOWN_MS));
    expect(lengths.slice(MAX_COOLDOWNS, MAX_COOLDOWNS + 3)).toEqual([1, 2, 4].map((times) => times * FIRST_QUARANTINE_MS));
    expect(lengths.at(-1)).toBe(MAX_QUARANTINE_MS);
    expect(reputation.restriction).toMatchObject({ kind: 'quarantine', reason: 'keeps_failing' });
    expect(stateAt(afterAnswer(reputation, now), now)).toBe('quarantined');
    const later = reputation.restriction?.until ?? Number.NaN;
    expect(stateAt(afterAnswer(reputation, later), later)).toBe('well');
  });

  it('fade with time', () => {
    const twice = fail(CLEAN_REPUTATION, 0, 'lost', 2);
    expect([0, 1, 2, 3].map((halves) => recentFailures(twice, halves * HALF_LIFE_MS))).toEqual([2, 1, 1, 0]);
    const mended = afterAnswer(fail(CLEAN_REPUTATION, 0, 'failed', 3), FIRST_COOLDOWN_MS);
    const [soon, late] = [FIRST_COOLDOWN_MS + 1000, 2 * COOLDOWN_FORGIVENESS_MS];
    expect(lengthOf(fail(mended, soon, 'failed', 3))).toBe(2 * FIRST_COOLDOWN_MS);
    expect(lengthOf(fail(mended, late, 'failed', 3))).toBe(FIRST_COOLDOWN_MS);
    expect([isClean(mended, soon), isClean(mended, late)]).toEqual([false, true]);
  });

  it('are forgotten by a bound if no job decides the probation, however many came before', () => {
    const lie = fail(CLEAN_REPUTATION, 0, 'unverified');
    const expiry = FIRST_QUARANTINE_MS + MAX_PROBATION_MS;
    expect(nextChangeAt(lie, FIRST_QUARANTINE_MS)).toBe(expiry);
    expect([isClean(lie, expiry - 1), isClean(lie, expiry)]).toEqual([false, true]);
    let broken = lie;
    for (let times = 0; times < 100; times++) broken = fail(broken, broken.restriction?.until ?? Number.NaN);
    expect(isClean(broken, (broken.restriction?.until ?? Number.NaN) + MAX_PROBATION_MS)).toBe(true);
  });

  it('now and then among verified answers lead to no cooldown', () => {
    let reputation = CLEAN_REPUTATION;
    for (let job = 0; job < 200; job++) reputation = job % 3 === 0 ? fail(reputation, job * 1000) : afterAnswer(reputation, job * 1000);
    expect(stateAt(reputation, 200_000)).toBe('well');
  });
});

it('a broken protocol leads to a cooldown at once, a false answer to half an hour of quarantine, slow answers to neither', () => {
  expect(stateAt(fail(CLEAN_REPUTATION, 0, 'misbehaved'), 0)).toBe('cooling_down');
  const lie = fail(CLEAN_REPUTATION, 0, 'unverified');
  expect([stateAt(lie, 0), lengthOf(lie), lie.restriction?.reason]).toEqual(['quarantined', FIRST_QUARANTINE_MS, 'answers_not_verified']);
  expect(stateAt(afterAnswer(lie, 1), 1)).toBe('quarantined');
  const secondLie = fail(lie, FIRST_QUARANTINE_MS, 'unverified');
  expect(lengthOf(secondLie)).toBe(2 * FIRST_QUARANTINE_MS);
  let late = CLEAN_REPUTATION;
  for (let times = 0; times < 50; times++) late = afterSlowAnswer(late, times);
  expect([stateAt(late, 50), recentFailures(late, 50)]).toEqual(['well', 1]);
});

it('no provider is excluded for more than a day and a quarter, and the next check always comes', () => {
  const step = fc.record({
    what: fc.constantFrom('failed', 'timed_out', 'lost', 'misbehaved', 'unverified', 'answer', 'late'),
    after: fc.constantFrom(0, 1, 5000, 60_000, 3_600_000, 90_000_000),
    random: fc.double({ min: 0, max: 0.999, noNaN: true }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      let [reputation, now] = [CLEAN_REPUTATION, 1];
      for (const { what, after, random } of steps) {
        now += after;
        if (what === 'answer') reputation = afterAnswer(reputation, now);
        else if (what === 'late') reputation = afterSlowAnswer(reputation, now);
        else reputation = afterFault(reputation, what as Fault, 'code', now, random);
        const { restriction } = reputation;
        if (restriction === null) continue;
        expect(RESTRICTION_REASONS).toContain(restriction.reason);
        expect(restriction.until - now).toBeLessThanOrEqual(1.25 * MAX_QUARANTINE_MS);
        if (stateAt(reputation, now) !== 'on_probation') expect(nextChangeAt(reputation, now)).toBe(restriction.until);
      }
      expect(isClean(afterAnswer(reputation, now + 10 * QUARANTINE_FORGIVENESS_MS), now + 100 * QUARANTINE_FORGIVENESS_MS)).toBe(true);
    }),
  );
});

it('the store is bounded, and restricted providers are evicted last', () => {
  const changed: string[] = [];
  const store = new ReputationStore({ now: () => 0, random: () => MIDDLE, onChange: (id) => changed.push(id), max: 10 });
  const id = (index: number): ProviderId => `p${index}` as ProviderId;
  store.faulted(id(0), 'unverified', 'code');
  for (let index = 1; index < 100; index++) store.faulted(id(index), 'failed', 'code');
  expect(store.size).toBe(10);
  expect([...store.restricted()].map(([providerId]) => providerId)).toEqual(['p0']);
  expect(changed).toHaveLength(100);
  store.answered(id(1000));
  expect(store.size).toBe(10);
  expect([store.clear(id(0)), store.clear(id(0))]).toEqual([true, false]);
  store.close();
});

describe('a provider on probation', () => {
  const trial = provider('trial', { restriction: 'on_probation' }, { decodeTps: 500 });
  const cooling = provider('cooling', { restriction: 'cooling_down' });
  const well = provider('well');
  const rules = { now: NOW, random: () => 0, isDistrusted: () => false };
  const place = (providers: Parameters<typeof poolOf>[0], request: Parameters<typeof withProbe>[1] = anyone, changes = {}): string[] => {
    const pool = poolOf(providers);
    const decision = withProbe(
      pool,
      request,
      schedule(pool, request, NOW, () => MIDDLE),
      { ...rules, ...changes },
    );
    return decision.kind === 'placed' ? decision.ordered.map(({ member }) => member.subject as string) : [decision.kind];
  };

  it('gets a share of the jobs that others can take over, one at a time', () => {
    expect(place([trial, well])).toEqual(['trial', 'well']);
    expect(place([trial, well], anyone, { random: () => 0.9 })).toEqual(['well']);
    expect(place([{ ...trial, facts: { ...trial.facts, usedSlots: 1 } }, well])).toEqual(['well']);
  });

  it('gets no job that failed elsewhere, and no hedge', () => {
    expect(place([trial, well, provider('failed')], { ...anyone, exclude: new Set([provider('failed').facts.providerId]) })).toEqual([
      'well',
    ]);
    expect(place([trial, well], { ...anyone, idleOnly: true })).toEqual(['well']);
    expect(place([trial, provider('busy', { usedSlots: 1 })], { ...anyone, idleOnly: true })).toEqual(['busy']);
  });

  it('after a false answer gets only jobs verified before delivery, while others exist', () => {
    const distrusted = { isDistrusted: () => true };
    expect(place([trial, well], anyone, distrusted)).toEqual(['well']);
    expect(place([trial, well], { ...anyone, revocable: true }, distrusted)).toEqual(['trial', 'well']);
    expect(place([trial], anyone, distrusted)).toEqual(['trial']);
  });

  it('is used when no other exists, as is one that cools down, also when named', () => {
    const busy = provider('busy', { usedSlots: 4 });
    expect(place([trial, busy])).toEqual(['trial']);
    expect(place([cooling])).toEqual(['cooling']);
    expect(place([cooling, busy])).toEqual(['busy']);
    expect(place([cooling, well], { ...anyone, providerSerial: 'S-cooling' })).toEqual(['cooling']);
    expect(place([{ ...cooling, facts: { ...cooling.facts, usedSlots: 1 } }])).toEqual(['busy']);
    expect(place([provider('out', { isQuarantined: true })])).toEqual(['none']);
    expect(place([{ ...cooling, facts: { ...cooling.facts, keyNotAfter: 0 } }])).toEqual(['none']);
  });
});

describe('a provider whose jobs fail', () => {
  let harness: Harness;
  afterEach(() => harness.close());
  const broken = { onJob: (job: ScriptedJob): void => job.fail({ code: 'engine_failed' }) };

  it('gets the cooldown with end and reason, and no job while others can serve', async () => {
    harness = await startHarness({ random: () => 0.5 });
    const bad = await harness.provider({ ...broken, serial: 'BAD' });
    for (let count = 0; count < 3; count++) expect((await harness.chat()).status).toBe(502);
    await until(() => bad.standing?.status === 'cooling_down');
    expect(bad.standing).toMatchObject({ routable: false, restraint: { state: 'cooling_down', reason: 'jobs_failed' } });
    expect((bad.standing?.restraint?.until ?? 0) - (bad.standing?.restraint?.since ?? 0)).toBe(FIRST_COOLDOWN_MS);
    // The only provider, so it still gets jobs, and clients see its failures.
    expect((await errorOf(await harness.chat())).code).toBe('provider_failed');
    const good = await harness.provider({ serial: 'GOOD' });
    const before = bad.jobs.size;
    for (let count = 0; count < 5; count++) expect((await harness.chat()).headers.get('x-provider-serial')).toBe('GOOD');
    expect([bad.jobs.size, good.jobs.size]).toEqual([before, 5]);
    const admin = (await (await harness.get('/admin/v1/providers', harness.adminKey)).json()) as { restrained: object[] };
    expect(admin.restrained).toMatchObject([{ provider_id: bad.providerId, state: 'cooling_down', detail: 'engine_failed' }]);
  });

  it('is not restricted for requests that no provider can serve, however often they come', async () => {
    harness = await startHarness({ random: () => 0.5 });
    const [one, other] = [await harness.provider(broken), await harness.provider(broken)];
    // The first three failures are counted, although all engines may be broken.
    for (let count = 0; count < 3; count++) expect((await harness.chat()).status).toBe(502);
    await until(() => one.standing?.status === 'cooling_down' && other.standing?.status === 'cooling_down');
    const fresh = [await harness.provider({ ...broken, serial: 'FRESH' }), await harness.provider(broken)];
    for (let count = 0; count < 6; count++) expect((await harness.chat()).status).toBe(502);
    expect(fresh.map(({ jobs }) => jobs.size)).toEqual([6, 6]);
    expect(fresh.map(({ standing }) => standing?.status)).toEqual(['online', 'online']);
    // Failures of requests for one named provider say nothing about the others.
    expect((await harness.chat({ provider_serial: 'FRESH' })).status).toBe(502);
    await until(() => harness.app.providers.reputations.summaryOf(fresh[0]?.providerId as ProviderId).recentFailures === 1);
  });

  it('keeps its reputation after a reconnect', async () => {
    harness = await startHarness({ random: () => 0.5 });
    const bad = await harness.provider(broken);
    for (let count = 0; count < 3; count++) await harness.chat();
    await until(() => bad.standing?.status === 'cooling_down');
    bad.close();
    const back = await harness.provider({ enclave: bad.enclave });
    await until(() => back.standing !== undefined);
    expect(back.standing).toMatchObject({ status: 'cooling_down', restraint: { reason: 'jobs_failed' } });
    // One verified answer ends the probation.
    expect((await harness.chat()).status).toBe(200);
    await until(() => back.standing?.status === 'online');
    expect(back.standing?.restraint).toBeUndefined();
  });

  it('gets one job after its quarantine, also after a false answer, and is well when the answer verifies', async () => {
    let ahead = 0;
    harness = await startHarness({
      random: () => 0.5,
      now: () => Date.now() + ahead,
      providerTimings: { silenceMs: 1e9, challengeIntervalMs: 1e9 },
    });
    let lies = true;
    const liar = await harness.provider({
      onJob: (job) =>
        job.answerHonestly(undefined, {
          receipt: (receipt) => ({ ...receipt, started_at: receipt.started_at + ahead, completed_at: receipt.completed_at + ahead }),
          message: (message) => (lies ? { ...message, response_sha256: '0'.repeat(64) } : message),
        }),
    });
    expect((await harness.chat()).status).toBe(502);
    expect((await harness.chat()).status).toBe(503);
    await until(() => liar.standing?.status === 'quarantined');
    ahead = FIRST_QUARANTINE_MS + 1;
    expect(harness.app.providers.reputations.summaryOf(liar.providerId).state).toBe('on_probation');
    lies = false;
    liar.send({ type: 'load', active_jobs: 0, thermal: 'fair' });
    await until(() => liar.standing?.status === 'online');
    expect(liar.standing).toMatchObject({ routable: true, restraint: { state: 'on_probation', reason: 'answers_not_verified' } });
    expect((await harness.chat()).status).toBe(200);
    expect(harness.app.providers.reputations.summaryOf(liar.providerId).state).toBe('well');
  });

  for (const [name, code, say] of [
    ['a message that is none', 'bad_message', (job) => job.provider.send({ type: 'load' })],
    ['a message that is too large', 'too_large', (job) => job.provider.send({ type: 'load', active_jobs: 0, more: 'x'.repeat(300_000) })],
    ['a registration', 'out_of_turn', (job) => job.provider.send({ type: 'hello', versions: [1], agent: { name: 'a', version: '1' } })],
  ] satisfies [string, string, (job: ScriptedJob) => void][]) {
    it(`and that answers a job with ${name} cools down, and comes back to that`, async () => {
      harness = await startHarness();
      const bad = await harness.provider({ onJob: say });
      expect((await harness.chat()).status).toBe(502);
      await bad.closed;
      expect(bad.rejection).toBe(code);
      const back = await harness.provider({ enclave: bad.enclave });
      await until(() => back.standing !== undefined);
      expect(back.standing).toMatchObject({ status: 'cooling_down', restraint: { reason: 'protocol_broken' } });
    });
  }

  it('and whose connection is lost with many jobs has failed once', async () => {
    harness = await startHarness();
    const provider = await harness.provider({ onJob: (job) => job.accept() });
    const asked = [1, 2, 3, 4].map(() => harness.chat());
    await until(() => provider.jobs.size === 4);
    provider.close();
    expect((await Promise.all(asked)).map(({ status }) => status)).toEqual([502, 502, 502, 502]);
    expect(harness.app.providers.reputations.summaryOf(provider.providerId)).toMatchObject({ state: 'well', recentFailures: 1 });
  });
});
