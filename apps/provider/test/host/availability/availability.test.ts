/** Whether a machine takes jobs: from policy, facts and time alone. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DEFAULTS } from '../../../src/config/config.js';
import { parseConfig } from '../../../src/config/read-config.js';
import { type AvailabilityFacts, availability, stressOf } from '../../../src/host/availability/availability.js';
import { COOLDOWN_MS, type Cooldowns, NO_COOLDOWNS, nextCooldowns } from '../../../src/host/availability/cooldowns.js';
import { pauseText, readPause } from '../../../src/host/availability/pause.js';
import { type AvailabilityPolicy, DAYS, policyOf } from '../../../src/host/availability/policy.js';
import { ConditionFilter, NORMAL_CONDITION } from '../../../src/host/condition/condition.js';

const POLICY = policyOf(DEFAULTS);
const FACTS: AvailabilityFacts = {
  timeZone: 'Europe/Berlin',
  ownerIdleMs: null,
  condition: NORMAL_CONDITION,
  remainingCooldowns: NO_COOLDOWNS,
  pause: null,
};
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
/** A Sunday, half past ten in Berlin. */
const NOW = Date.parse('2026-11-22T09:30:00Z');
const NIGHTS = { days: [...DAYS], from: '22:00', to: '07:00' } as const;

const judge = (policy: Partial<AvailabilityPolicy>, facts: Partial<AvailabilityFacts> = {}, now = NOW) =>
  availability({ ...POLICY, ...policy }, { ...FACTS, ...facts }, now);

describe('a machine', () => {
  it('serves without reasons against it, indefinitely', () => {
    expect(judge({})).toEqual({ state: 'serve', reasons: [], nextChangeAt: null });
  });

  it.each([
    ['paused', {}, { pause: { until: null } }, 'leave', null, 'Paused until you resume.'],
    ['paused', {}, { pause: { until: NOW + 2 * HOUR } }, 'leave', NOW + 2 * HOUR, 'Paused until 12:30.'],
    ['outside_schedule', { windows: [NIGHTS] }, {}, 'leave', NOW + 11.5 * HOUR, 'Outside your schedule until 22:00.'],
    [
      'outside_schedule',
      { windows: [{ days: ['mon'], from: '06:00', to: '08:00' }] },
      {},
      'leave',
      NOW + 19.5 * HOUR,
      'Outside your schedule until Mon 06:00.',
    ],
    ['on_battery', {}, { condition: { ...NORMAL_CONDITION, power: 'battery' } }, 'leave', null, 'This machine runs on battery.'],
    [
      'low_battery',
      { onBattery: 'serve' },
      { condition: { ...NORMAL_CONDITION, power: 'low_battery' } },
      'leave',
      null,
      'The battery is low.',
    ],
    ['too_hot', {}, { condition: { ...NORMAL_CONDITION, thermal: 'serious' } }, 'hand_back', null, 'This machine is too hot.'],
    [
      'too_hot',
      { whenHot: 'serve' },
      { condition: { ...NORMAL_CONDITION, thermal: 'critical' } },
      'hand_back',
      null,
      'This machine is too hot.',
    ],
    [
      'no_memory',
      {},
      { condition: { ...NORMAL_CONDITION, memoryPressure: 'critical' } },
      'hand_back',
      null,
      'This machine is out of memory.',
    ],
    [
      'owner_active',
      { onlyWhenIdleMinutes: 10 },
      { ownerIdleMs: 4 * MINUTE },
      'leave',
      NOW + 6 * MINUTE,
      'This machine is in use. Requests are accepted after 10 minutes of inactivity.',
    ],
    [
      'idle_unknown',
      { onlyWhenIdleMinutes: 10 },
      {},
      'leave',
      null,
      'Set to serve only while this machine is idle, which cannot be measured here.',
    ],
  ] as const)('does not while it is %s', (code, policy, facts, state, nextChangeAt, text) => {
    const found = judge(policy as Partial<AvailabilityPolicy>, facts as Partial<AvailabilityFacts>);
    expect(found).toMatchObject({ state, nextChangeAt, reasons: [{ code, text }] });
  });

  it.each([
    [{ onBattery: 'serve' }, { condition: { ...NORMAL_CONDITION, power: 'battery' } }],
    [{ whenHot: 'serve' }, { condition: { ...NORMAL_CONDITION, thermal: 'serious' } }],
    [{}, { condition: { thermal: 'fair', memoryPressure: 'warning', power: 'mains' } }],
    [{ onlyWhenIdleMinutes: 10 }, { ownerIdleMs: 10 * MINUTE }],
    [{ windows: [NIGHTS], timeZone: 'Asia/Tokyo' }, {}, Date.parse('2026-11-22T14:00:00Z')],
    [{}, { pause: { until: NOW } }],
  ] as const)('serves with %j and %j', (policy, facts, now = NOW) => {
    expect(judge(policy as Partial<AvailabilityPolicy>, facts as Partial<AvailabilityFacts>, now).state).toBe('serve');
  });

  it('hands running jobs back if the policy says so', () => {
    expect(judge({ whenLeaving: 'hand_back' }, { pause: { until: null } }).state).toBe('hand_back');
  });

  it('gives every reason, and says when none is left', () => {
    const windows = [NIGHTS];
    const found = judge({ windows, onlyWhenIdleMinutes: 10 }, { pause: { until: NOW + 15 * HOUR }, ownerIdleMs: 0 });
    expect(found.reasons.map(({ code }) => code)).toEqual(['paused', 'outside_schedule', 'owner_active']);
    // The pause ends in the night, while the schedule is open.
    expect(found.nextChangeAt).toBe(NOW + 15 * HOUR);
    // The pause ends at noon; the schedule stays closed for ten hours.
    expect(judge({ windows }, { pause: { until: NOW + 1.5 * HOUR } }).nextChangeAt).toBe(NOW + 11.5 * HOUR);
    expect(judge({ windows }, { condition: { ...NORMAL_CONDITION, power: 'battery' } }).nextChangeAt).toBeNull();
  });

  it('reports the end of the schedule while serving', () => {
    expect(judge({ windows: [NIGHTS] }, {}, NOW + 12 * HOUR).nextChangeAt).toBe(Date.parse('2026-11-23T06:00:00Z'));
  });

  it('reports the cooldown of ended stress, and does not hand back jobs for it', () => {
    const found = judge({}, { remainingCooldowns: { ...NO_COOLDOWNS, heat: 30_000 } });
    expect(found).toMatchObject({ state: 'leave', nextChangeAt: NOW + 30_000, reasons: [{ code: 'too_hot', until: null }] });
    expect(found.reasons[0]?.text).toMatch(/^This machine was too hot\. It has recovered/);
  });

  it('is constant until its next change, for any policy', () => {
    const policies = fc.record({
      windows: fc.array(
        fc.record({
          days: fc.subarray([...DAYS], { minLength: 1 }),
          from: fc.constantFrom('00:00', '02:30', '07:00', '22:00', '23:59'),
          to: fc.constantFrom('00:30', '02:30', '07:30', '22:30', '24:00'),
        }),
        { maxLength: 3 },
      ),
      onlyWhenIdleMinutes: fc.option(fc.integer({ min: 1, max: 1440 })),
      timeZone: fc.constantFrom('Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', null),
    });
    const facts = fc.record({
      ownerIdleMs: fc.integer({ min: 0, max: 86_400_000 }),
      pause: fc.option(fc.record({ until: fc.option(fc.integer({ min: NOW - HOUR, max: NOW + 50 * HOUR })) })),
    });
    fc.assert(
      fc.property(policies, facts, fc.double({ min: 0, max: 1, noNaN: true }), (policy, some, part) => {
        const found = judge(policy, some);
        const end = found.nextChangeAt ?? NOW + 7 * 24 * HOUR;
        const between = Math.floor(NOW + part * (end - NOW - 1));
        // No owner input in between.
        const later = { ...some, ownerIdleMs: some.ownerIdleMs + (between - NOW) };
        expect(judge(policy, later, between).state === 'serve').toBe(found.state === 'serve');
        if (found.nextChangeAt === null) return;
        const then = { ...some, ownerIdleMs: some.ownerIdleMs + (found.nextChangeAt - NOW) };
        expect(judge(policy, then, found.nextChangeAt).state === 'serve').toBe(found.state !== 'serve');
      }),
      { numRuns: 80 },
    );
  });
});

describe('trouble', () => {
  it('counts at once, and is over only when there was none for a while', () => {
    let holds: Cooldowns = NO_COOLDOWNS;
    holds = nextCooldowns(holds, { heat: true, memory: false, power: false }, 1000);
    expect(holds).toEqual({ heat: 1000 + COOLDOWN_MS.heat, memory: 0, power: 0 });
    holds = nextCooldowns(holds, { heat: false, memory: false, power: false }, 1000 + COOLDOWN_MS.heat - 1);
    expect(holds.heat).toBe(1000 + COOLDOWN_MS.heat);
    expect(nextCooldowns(holds, { heat: false, memory: false, power: false }, 1000 + COOLDOWN_MS.heat)).toEqual(NO_COOLDOWNS);
  });

  it('with stress that fluctuates for an hour has one absence', () => {
    let holds: Cooldowns = NO_COOLDOWNS;
    let changes = 0;
    let served = true;
    for (let tick = 10_000; tick < HOUR; tick += 10_000) {
      const power = (tick / 10_000) % 5 === 0;
      holds = nextCooldowns(holds, { heat: false, memory: false, power }, tick);
      const serves = judge({}, { remainingCooldowns: { ...NO_COOLDOWNS, power: Math.max(0, holds.power - tick) } }).state === 'serve';
      if (serves !== served) changes++;
      served = serves;
    }
    expect(changes).toBe(1);
  });
});

describe('a machine with a fluctuating condition', () => {
  it.each([
    [1, 1],
    [2, 3],
    [1, 7],
  ])('with %i bad looks and %i good ones in turn goes away once in an hour', (bad, good) => {
    const steady = new ConditionFilter();
    let holds: Cooldowns = NO_COOLDOWNS;
    let states = 'serve';
    for (let look = 1; look <= 360; look++) {
      const tick = look * 10_000;
      const power = look % (bad + good) < bad ? 'battery' : 'mains';
      steady.update({ ...NORMAL_CONDITION, power });
      holds = nextCooldowns(holds, stressOf(POLICY, steady.current), tick);
      const facts = { condition: steady.current, remainingCooldowns: { ...NO_COOLDOWNS, power: Math.max(0, holds.power - tick) } };
      const { state } = judge({}, facts);
      if (!states.endsWith(state)) states += ` ${state}`;
    }
    expect(states).toBe('serve leave');
  });
});

describe('a pause on disk', () => {
  it('is read back as written, and ignored after its end', () => {
    for (const until of [null, NOW + 1]) expect(readPause(pauseText({ until }), NOW)).toEqual({ until });
    expect(readPause(pauseText({ until: NOW }), NOW)).toBeNull();
  });

  it.each(['', '{', '[]', 'null', '{}', '{"until":"tomorrow"}', '{"until":1e400}', '{"until":0.5}', '{"until":-1}'])(
    'damaged as %j is none',
    (text) => {
      expect(readPause(text, NOW)).toBeNull();
    },
  );
});

describe('the settings', () => {
  it('become a policy, with every day where none is named', () => {
    const text = '[availability]\ntime_zone = "Asia/Tokyo"\nwindows = [{ from = "22:00", to = "07:00" }]\nonly_when_idle_minutes = 5\n';
    expect(policyOf(parseConfig(text, 'x'))).toEqual({
      timeZone: 'Asia/Tokyo',
      windows: [{ days: [...DAYS], from: '22:00', to: '07:00' }],
      onlyWhenIdleMinutes: 5,
      onBattery: 'stop',
      whenHot: 'stop',
      whenLeaving: 'finish',
    });
  });

  it.each([
    ['only_when_idle_minutes = 0', 'only_when_idle_minutes must be a whole number from 1 to 1440'],
    ['only_when_idle_minutes = 1e9', 'only_when_idle_minutes must be a whole number from 1 to 1440'],
    ['time_zone = "Middle/Earth"', 'there is no time zone "Middle/Earth"'],
    ['windows = [{ from = "25:00", to = "07:00" }]', 'availability.windows.0.from must be a time of day'],
    ['windows = [{ from = "24:00", to = "07:00" }]', 'availability.windows.0.from must be a time of day'],
    ['windows = [{ days = ["someday"], from = "22:00", to = "07:00" }]', 'must be one of "mon"'],
    ['on_battery = "maybe"', 'availability.on_battery must be one of "stop", "serve"'],
  ])('are refused where they are absurd: %s', (line, problem) => {
    expect(() => parseConfig(`[availability]\n${line}\n`, 'config.toml')).toThrow(problem);
  });
});
