/** Statistical tests, and properties of offers and comparisons that hold for every fleet. */
import { DEFAULT_ROLLOUT_POLICY, type RolloutComparison } from '@inference/formats';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compareHealth } from '../../src/releases/health-comparison.js';
import { isInStage, reservedSlots, rolloutPosition, whyNotOffered } from '../../src/releases/offer-policy.js';
import { type ComparedMachine, type Fleet, type Rollout, stageRules } from '../../src/releases/rollout.js';
import { checkRollout } from '../../src/releases/rollout-decision.js';
import { fisherExact, higherRate, lowerMean } from '../../src/releases/statistical-tests.js';

const MINUTE = 60_000;
const NOW = 1_800_000_000_000;
const SEED = { seed: 22, numRuns: 60 };

const machine = (change: Partial<ComparedMachine> = {}): ComparedMachine => ({
  providerId: 'p',
  chipFamily: 'M4',
  models: ['m'],
  slots: 1,
  part: 'updated',
  at: NOW - 30 * MINUTE,
  seenAt: NOW,
  onVersionAt: NOW - 25 * MINUTE,
  hasFailed: false,
  isBlocked: false,
  trustBefore: 2,
  trust: 2,
  isRestricted: false,
  attempts: 0,
  failures: 0,
  speedRatio: null,
  owner: change.providerId ?? 'p',
  isVolunteer: false,
  ...change,
});
const many = (count: number, change: Partial<ComparedMachine>): ComparedMachine[] =>
  Array.from({ length: count }, (_, index) => machine({ providerId: `${change.part ?? 'updated'}-${index}`, ...change }));
const fleetOf = (slots: number): Fleet => ({
  machines: slots,
  availableMachines: slots,
  machinesByOwner: new Map(),
  machinesByChip: new Map([['M4', slots]]),
  machinesByVersion: new Map(),
  slots,
  slotsByModel: new Map([['m', slots]]),
  slotsByChip: new Map([['M4', slots]]),
});
const ROLLOUT: Rollout = {
  version: '2.0.0',
  state: 'active',
  stage: 0,
  startedAt: NOW - 600 * MINUTE,
  stageStartedAt: NOW - 130 * MINUTE,
  isUrgent: false,
  evidenceSince: 0,
  endedAt: null,
  reason: null,
  changedBy: 'coordinator',
};
const NO_OWNERS: ReadonlySet<string> = new Set();
const NO_ACCOUNT = 'no account';
const verdicts = (
  machines: readonly ComparedMachine[],
  { fleetSize = 100, provenOwners = NO_OWNERS } = {},
): Record<string, RolloutComparison['verdict']> =>
  Object.fromEntries(
    compareHealth(machines, { fleetSize, provenOwners, noAccount: NO_ACCOUNT, now: NOW })
      .filter(({ cohort }) => cohort === null)
      .map(({ measure, verdict }) => [measure, verdict]),
  );

describe('statistical tests', () => {
  it('agree with published values', () => {
    // The tea tasting: 3 of 4 against 1 of 4 (Agresti, Categorical Data Analysis, section 3.5).
    expect(fisherExact({ bad: 3, count: 4 }, { bad: 1, count: 4 })).toBeCloseTo(0.2429, 4);
    expect(fisherExact({ bad: 3, count: 3 }, { bad: 0, count: 9 })).toBeCloseTo(1 / 220, 6);
    expect(fisherExact({ bad: 0, count: 9 }, { bad: 3, count: 3 })).toBe(1);
    const equal = Array.from({ length: 10 }, () => ({ bad: 1, count: 10 }));
    expect(higherRate(equal, equal)).toBeCloseTo(0.5, 6);
    expect(lowerMean([0, 0.2], [0, 0.2], 0)).toBeCloseTo(0.5, 6);
    // z = 1.96: means 0 and 1.96 with a variance of the mean of one half each.
    expect(lowerMean([-1 / Math.SQRT2, 1 / Math.SQRT2], [1.96 - 1 / Math.SQRT2, 1.96 + 1 / Math.SQRT2], 0)).toBeCloseTo(0.025, 4);
  });

  it('attribute the failures of one machine to this machine', () => {
    const others = Array.from({ length: 30 }, () => ({ bad: 0, count: 100 }));
    const oneBroken = [{ bad: 100, count: 100 }, ...others.slice(0, 19)];
    const allWorse = Array.from({ length: 20 }, () => ({ bad: 5, count: 100 }));
    expect(higherRate(oneBroken, others)).toBeGreaterThan(0.1);
    expect(higherRate(allWorse, others)).toBeLessThan(1e-6);
  });
});

describe('offers', () => {
  it('never exceed the reserved capacity, and never stop a machine that was offered the version', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 300 }), fc.integer({ min: 0, max: 3 }), fc.boolean(), (slots, stage, isUrgent) => {
        const rollout = { ...ROLLOUT, stage, isUrgent };
        const rules = stageRules(rollout, DEFAULT_ROLLOUT_POLICY);
        const fleet = fleetOf(slots);
        const offered: ComparedMachine[] = [];
        for (let index = 0; index < slots; index++) {
          const traits = { providerId: `p-${index}`, chipFamily: 'M4', models: ['m'], slots: 1 };
          const updating = reservedSlots(offered, NOW);
          const question = { rollout, rules, machine: traits, isCanary: true, isOwnerRequest: false, fleet, updating, now: NOW };
          if (whyNotOffered({ ...question, earlier: null }) === null) {
            const one = machine({ ...traits, at: NOW, onVersionAt: null });
            offered.push(one);
            expect(whyNotOffered({ ...question, earlier: one })).toBeNull();
          }
        }
        const limit = Math.floor((slots * Math.min(rules.maxNetworkPercent, rules.maxCohortPercent)) / 100);
        expect(offered).toHaveLength(Math.min(slots, Math.max(1, limit)));
      }),
      SEED,
    );
  });

  it('grow with the stage: a machine that was included stays included', () => {
    const shares = DEFAULT_ROLLOUT_POLICY.stages.map((_, stage) => {
      const rules = stageRules({ stage, isUrgent: false }, DEFAULT_ROLLOUT_POLICY);
      return Array.from({ length: 800 }, (_, index) =>
        isInStage('2.0.0', { providerId: `p-${index}`, chipFamily: 'M4' }, rules, fleetOf(800)),
      );
    });
    for (const [index, included] of shares.entries()) {
      const share = included.filter(Boolean).length / included.length;
      expect(share).toBeCloseTo((DEFAULT_ROLLOUT_POLICY.stages[index]?.percent ?? 0) / 100, 1);
      for (const [position, isIncluded] of (shares[index - 1] ?? []).entries()) if (isIncluded) expect(included[position]).toBe(true);
    }
  });

  it('begin with other machines for each version', () => {
    const first = (version: string) =>
      Array.from({ length: 1000 }, (_, index) => `p-${index}`).filter((providerId) => rolloutPosition(providerId, version) < 0.05);
    const [before, after] = [first('2.0.0'), first('2.1.0')];
    expect(before.length).toBeGreaterThan(25);
    expect(before.filter((id) => after.includes(id)).length).toBeLessThan(12);
  });

  it('end while a machine is missing, after a halt, and where the version failed', () => {
    const fleet = fleetOf(20);
    const rules = stageRules({ stage: 3, isUrgent: false }, DEFAULT_ROLLOUT_POLICY);
    const missing = machine({ providerId: 'lost', at: NOW - 30 * MINUTE, seenAt: NOW - 20 * MINUTE, onVersionAt: null });
    const traits = { providerId: 'p', chipFamily: 'M4', models: ['m'], slots: 1 };
    const question = { rollout: ROLLOUT, rules, machine: traits, isCanary: false, isOwnerRequest: false, fleet, earlier: null, now: NOW };
    expect(whyNotOffered({ ...question, updating: reservedSlots([missing], NOW) })).toBe('capacity');
    expect(whyNotOffered({ ...question, updating: reservedSlots([missing], NOW + 25 * 60 * MINUTE) })).toBeNull();
    // Disconnected for its update late, and may still return in time.
    const away = machine({ at: NOW - 62 * MINUTE, seenAt: NOW - 5 * MINUTE, onVersionAt: null });
    for (const onVersionAt of [null, NOW - 8 * MINUTE]) {
      expect(whyNotOffered({ ...question, updating: reservedSlots([{ ...away, onVersionAt }], NOW) })).toBe('capacity');
    }
    const updating = reservedSlots([], NOW);
    expect(whyNotOffered({ ...question, updating, rollout: { ...ROLLOUT, state: 'halted' }, isOwnerRequest: true })).toBe('stopped');
    const failed = machine({ hasFailed: true, onVersionAt: null });
    expect(whyNotOffered({ ...question, updating, earlier: failed })).toBe('failed_here');
    expect(whyNotOffered({ ...question, updating, earlier: failed, isOwnerRequest: true })).toBeNull();
  });
});

describe('comparisons', () => {
  it('ignore changes of all machines alike, and departures long after the update', () => {
    const gone = { seenAt: NOW - 15 * MINUTE };
    expect(verdicts([...many(10, gone), ...many(30, { ...gone, part: 'control', onVersionAt: null })]).missing).toBe('good');
    const later = { at: NOW - 600 * MINUTE, seenAt: NOW - 15 * MINUTE };
    expect(verdicts([...many(10, later), ...many(30, { part: 'control', onVersionAt: null })]).missing).toBe('good');
  });

  it('stop at three machines of a large fleet and two of a small one with one large owner', () => {
    const controls = many(9, { part: 'control', onVersionAt: null });
    const gone = { seenAt: NOW - 15 * MINUTE };
    expect(verdicts([...many(2, gone), ...controls]).missing).not.toBe('worse');
    expect(verdicts([...many(3, gone), ...controls]).missing).toBe('worse');
    const ofOwner = (owner: string) => (machine: ComparedMachine) => ({ ...machine, owner });
    const small = [...many(2, gone), ...controls.slice(0, 6)];
    expect(verdicts(small.map(ofOwner('a')), { fleetSize: 8, provenOwners: new Set(['a']) }).missing).toBe('worse');
    expect(verdicts(small, { fleetSize: 8 }).missing).not.toBe('worse');
    expect(verdicts([...many(3, { trust: 1 }), ...controls]).trust_lost).toBe('worse');
    expect(verdicts([...many(3, { hasFailed: true, onVersionAt: null }), ...controls]).missing).toBe('worse');
  });

  it('stop neither for machines that chose the version themselves, nor for many machines of one owner', () => {
    const controls = many(30, { part: 'control', onVersionAt: null });
    const bad = { hasFailed: true, onVersionAt: null, attempts: 100, failures: 90, speedRatio: 0.1 };
    expect(verdicts([...many(9, { ...bad, isVolunteer: true }), ...controls]).missing).toBe('concern');
    expect(verdicts([...many(9, { ...bad, isVolunteer: true }), machine({ providerId: 'by stage', ...bad }), ...controls]).missing).toBe(
      'worse',
    );
    expect(verdicts([...many(9, { ...bad, owner: 'one' }), ...controls]).missing).not.toBe('worse');
    const rated = { attempts: 100, failures: 90, speedRatio: 0.1 };
    const others = many(30, { part: 'control', onVersionAt: null, attempts: 100, speedRatio: 1 });
    for (const change of [{ isVolunteer: true }, { owner: 'one' }]) {
      const found = verdicts([...many(9, { ...rated, ...change }), ...others]);
      expect([found.failed_requests, found.slower]).toEqual(['not_enough_data', 'not_enough_data']);
    }
    // Machines of a large owner, or of one that the operator trusts, are counted individually.
    const same = [...many(9, { ...bad, owner: 'one' }), ...controls.map((one) => ({ ...one, owner: 'one' }))];
    expect(verdicts(same).missing).not.toBe('worse');
    expect(verdicts(same, { provenOwners: new Set(['one']) }).missing).toBe('worse');
  });

  it.each([3, 4])('stop a bad release in a network of %i owners', (owners) => {
    const owned = (machines: readonly ComparedMachine[]) => machines.map((one, index) => ({ ...one, owner: `owner-${index % owners}` }));
    const controls = owned(many(20 * owners, { part: 'control', onVersionAt: null }));
    expect(verdicts([...owned(many(2 * owners, { trust: 1 })), ...controls]).trust_lost).toBe('worse');
    expect(verdicts([...owned(many(2 * owners, { hasFailed: true, onVersionAt: null })), ...controls]).missing).toBe('worse');
    // A few controls that their owners switched off do not hide a fault.
    const some = controls.map((one, index) => (index < owners ? { ...one, seenAt: NOW - 15 * MINUTE } : one));
    expect(verdicts([...owned(many(5 * owners, { seenAt: NOW - 15 * MINUTE })), ...some]).missing).toBe('worse');
  });

  it('stop a fault of some machines of four owners, which no two of them can claim', () => {
    const owned = (machines: readonly ComparedMachine[], owners: number) =>
      machines.map((one, index) => ({ ...one, owner: `owner-${index % owners}` }));
    const part = many(80, {}).map((one, index) => (index % 3 === 0 ? { ...one, trust: 1 } : one));
    const controls = many(80, { part: 'control', onVersionAt: null });
    const faults = (owners: number) => verdicts([...owned(part, owners), ...owned(controls, owners)]).trust_lost;
    expect(faults(4)).toBe('worse');
    expect(faults(2)).not.toBe('worse');
  });

  it('do not stop a good release for single machines of many owners', () => {
    const owned = (machines: readonly ComparedMachine[]) => machines.map((one, index) => ({ ...one, owner: `owner-${index % 4}` }));
    const updated = owned(many(200, {})).map((one, index) => (index < 3 ? { ...one, seenAt: NOW - 15 * MINUTE } : one));
    expect(verdicts([...updated, ...owned(many(8, { part: 'control', onVersionAt: null }))]).missing).toBe('good');
  });

  it('never stop for fewer than three owners, whatever their machines do', () => {
    const figure = fc.integer({ min: 0, max: 100_000 });
    const fake = fc.record({
      part: fc.constantFrom('updated' as const, 'control' as const),
      owner: fc.constantFrom('a', 'b', NO_ACCOUNT),
      chipFamily: fc.constantFrom('M4', 'M99'),
      hasFailed: fc.boolean(),
      onVersionAt: fc.constantFrom(null, NOW - 25 * MINUTE),
      isRestricted: fc.boolean(),
      trust: fc.integer({ min: 0, max: 2 }),
      seenAt: fc.constantFrom(NOW, NOW - 15 * MINUTE),
      attempts: figure,
      failures: figure,
      speedRatio: fc.double({ min: 1e-9, max: 1e9, noNaN: true }),
      isVolunteer: fc.boolean(),
    });
    fc.assert(
      fc.property(
        fc.array(fake, { maxLength: 40 }),
        fc.integer({ min: 0, max: 9 }),
        fc.integer({ min: 2, max: 100 }),
        (fakes, honest, fleet) => {
          const served = { attempts: 200, failures: 1, speedRatio: 1 };
          const machines = [
            ...fakes.map((one, index) => machine({ ...one, providerId: `fake-${index}` })),
            ...many(honest, served),
            ...many(3 * honest, { ...served, part: 'control', onVersionAt: null }),
          ];
          for (const { verdict } of compareHealth(machines, { fleetSize: fleet, provenOwners: NO_OWNERS, noAccount: NO_ACCOUNT, now: NOW }))
            expect(verdict).not.toBe('worse');
        },
      ),
      { seed: 22, numRuns: 150 },
    );
  });

  it('count one owner once, however many requests its machines fail', () => {
    const honest = many(6, { attempts: 20, failures: 0 });
    const flood = many(2, { providerId: 'flood', attempts: 1_000_000, failures: 1_000_000 });
    const fakes = flood.map((one, index) => ({ ...one, owner: `fake-${index}` }));
    const others = many(30, { part: 'control', onVersionAt: null, attempts: 20 });
    expect(verdicts([...honest, ...fakes, ...others]).failed_requests).not.toBe('worse');
    const worse = many(6, { attempts: 400, failures: 80 });
    expect(verdicts([...worse, ...others]).failed_requests).toBe('worse');
  });

  it('never call equal groups worse', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 60 }),
        fc.integer({ min: 0, max: 60 }),
        fc.double({ min: 0.2, max: 2, noNaN: true }),
        (size, bad, speedRatio) => {
          const group = (part: ComparedMachine['part']) =>
            many(size, { part, speedRatio, attempts: 40, onVersionAt: part === 'updated' ? NOW : null }).map((one, index) =>
              index < bad ? { ...one, isRestricted: true, trust: 1, failures: 9 } : one,
            );
          for (const { verdict } of compareHealth([...group('updated'), ...group('control')], {
            fleetSize: size * 2,
            provenOwners: NO_OWNERS,
            noAccount: NO_ACCOUNT,
            now: NOW,
          }))
            expect(verdict).not.toBe('worse');
        },
      ),
      SEED,
    );
  });
});

describe('decisions', () => {
  const check = (machines: readonly ComparedMachine[], change: Partial<Rollout> = {}, fleet = fleetOf(1000), startedAt = 0) =>
    checkRollout({ ...ROLLOUT, ...change }, DEFAULT_ROLLOUT_POLICY, {
      fleet,
      machines,
      trustedOwners: NO_OWNERS,
      machinesByOwner: fleet.machinesByOwner,
      noAccount: NO_ACCOUNT,
      now: NOW,
      startedAt,
    }).step;

  it('wait for the time, then for the machines, and then go on', () => {
    expect(check(many(9, {}), { stageStartedAt: NOW - 60 * MINUTE })).toEqual({
      kind: 'stay',
      waitingFor: '60 minutes of this stage remain.',
    });
    expect(check(many(4, {}))).toEqual({ kind: 'stay', waitingFor: '4 of at least 5 machines have updated.' });
    expect(check(many(5, {}))).toEqual({ kind: 'advance' });
    const late = { at: NOW - 60 * MINUTE, onVersionAt: NOW - 9 * MINUTE };
    expect(check(many(5, late))).toEqual({ kind: 'stay', waitingFor: '0 of at least 5 machines have updated.' });
    expect(check(many(5, { ...late, onVersionAt: NOW - 10 * MINUTE }))).toEqual({ kind: 'advance' });
    expect(check([], { stageStartedAt: NOW - 240 * MINUTE })).toEqual({ kind: 'advance' });
    const missing = many(2, { seenAt: NOW - 15 * MINUTE, onVersionAt: null });
    expect(check([...many(1, { providerId: 'well' }), ...missing], { stageStartedAt: NOW - 240 * MINUTE }).kind).toBe('stay');
  });

  it('go on without machines that never come back, and with as few machines as a small fleet has', () => {
    const overdue = { stageStartedAt: NOW - 1600 * MINUTE };
    const lost = (hours: number) => [machine({ onVersionAt: null, at: NOW - hours * 60 * MINUTE, seenAt: NOW - hours * 60 * MINUTE })];
    expect(check(lost(20), overdue, fleetOf(3))).toEqual({
      kind: 'stay',
      waitingFor: '0 of at least 1 machine has updated, and 1 did not come back.',
    });
    expect(check(lost(25), overdue, fleetOf(3))).toEqual({ kind: 'advance' });
    expect(check(many(1, {}), {}, fleetOf(3))).toEqual({ kind: 'advance' });
  });

  it('take the first machines after a start for no whole network', () => {
    const ofOneOwner = many(5, { owner: 'one', hasFailed: true, onVersionAt: null });
    const fleet = { ...fleetOf(20), machinesByOwner: new Map([['one', 15]]) };
    expect(check(ofOneOwner, {}, fleet, NOW - 9 * MINUTE).kind).toBe('stay');
    expect(check(ofOneOwner, {}, fleet).kind).toBe('halt');
  });

  it('count lost machines of an owner who has half of the network with them', () => {
    const lost = many(4, { owner: 'one', seenAt: NOW - 15 * MINUTE });
    const rest = many(6, { owner: 'one', part: 'control', onVersionAt: null });
    const fleet = { ...fleetOf(13), availableMachines: 13, machinesByOwner: new Map([['one', 6]]) };
    expect(check([...lost, ...rest], {}, fleet).kind).toBe('halt');
    const without = lost.map((one) => ({ ...one, owner: NO_ACCOUNT }));
    const accountless = { ...fleet, machinesByOwner: new Map([[NO_ACCOUNT, 6]]) };
    expect(check([...without, ...rest], {}, accountless).kind).not.toBe('halt');
  });

  it('wait after a start until the machines are back', () => {
    const last = { stage: 3, stageStartedAt: NOW - 9000 * MINUTE };
    expect(check([], last, fleetOf(0)).kind).toBe('stay');
    expect(check([], last, fleetOf(9), NOW - 9 * MINUTE).kind).toBe('stay');
    expect(check([], last, fleetOf(9), NOW - 10 * MINUTE).kind).toBe('complete');
    expect(check(many(5, {}), {}, fleetOf(1000), NOW).kind).toBe('stay');
  });

  it('complete the last stage when most machines run the version', () => {
    const last = { stage: 3, stageStartedAt: NOW - 1500 * MINUTE };
    const fleet = fleetOf(100);
    const on = (count: number): Fleet => ({ ...fleet, machinesByVersion: new Map([['2.0.0', count]]) });
    expect(check([], last, on(79))).toEqual({ kind: 'stay', waitingFor: '79 of 100 machines run the version.' });
    expect(check([], last, on(80))).toEqual({ kind: 'complete' });
    expect(check([], { ...last, stageStartedAt: NOW - 3000 * MINUTE }, on(10))).toEqual({ kind: 'complete' });
  });

  it('name the cohort and the figures of a halt', () => {
    const step = check([...many(3, { trust: 0 }), ...many(9, { part: 'control', onVersionAt: null })]);
    expect(step).toEqual({
      kind: 'halt',
      reason:
        '3 of 3 updated machines lost their trust level; of the others, 0 of 9. On M4: 3 of 3 updated machines lost their trust level; of the others, 0 of 9. With m: 3 of 3 updated machines lost their trust level; of the others, 0 of 9.',
    });
  });
});
