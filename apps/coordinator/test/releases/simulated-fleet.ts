/** A fleet in virtual time that updates to a release, with the real decision code. Equal seeds give equal runs. */
import { DEFAULT_ROLLOUT_POLICY, type RolloutPolicy } from '@inference/formats';
import { pickControls } from '../../src/releases/control-sample.js';
import { type ReservedSlots, reservedSlots, whyNotOffered } from '../../src/releases/offer-policy.js';
import { type ComparedMachine, type Fleet, type Rollout, stageRules } from '../../src/releases/rollout.js';
import { checkRollout } from '../../src/releases/rollout-decision.js';

/** What a release does to machines that update to it. */
export interface ReleaseFault {
  /** Machines that have the fault. Default: all. */
  readonly affects?: (machine: SimulatedMachine) => boolean;
  /** Whether the machine never returns. */
  readonly isLost?: boolean;
  /** Whether the trial fails. The machine then reports this and runs the previous version again. */
  readonly failsTrial?: boolean;
  readonly losesTrust?: boolean;
  /** Additional share of failed requests. */
  readonly failureRate?: number;
  /** Factor by which the decode rate changes. */
  readonly speed?: number;
}

export interface SimulationResult {
  readonly outcome: 'complete' | 'halted' | 'unfinished';
  /** Virtual hours until the rollout ended. */
  readonly hours: number;
  /** Share of machines that were offered the version. */
  readonly offered: number;
  /** Maximum share of slots lost at any moment: disconnected, blocked, restarting, slower, or with failed requests. */
  readonly networkLoss: number;
  /** The same for the model that lost most, among models that lost more than one machine. */
  readonly modelLoss: number;
  readonly reason: string | null;
}

interface SimulatedMachine {
  readonly id: string;
  readonly chip: string;
  readonly models: readonly string[];
  readonly slots: number;
  /** Installed in another way: the agent never asks for updates. */
  readonly isManual: boolean;
  readonly requestsPerHour: number;
  asksAt: number;
  /** Offline until this time, by decision of the owner. */
  awayUntil: number;
  seenAt: number;
  trust: number;
  /** When the machine switches to the version, and when it returns to the previous one. */
  switchesAt: number;
  returnsAt: number;
  isOnVersion: boolean;
  isFaulty: boolean;
  isLost: boolean;
  hasFailed: boolean;
}

type Record = { -readonly [Key in keyof ComparedMachine]: ComparedMachine[Key] };

const VERSION = '2.0.0';
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const TICK_MS = 5 * MINUTE;
/** The coordinator checks every minute. */
const TICKS_PER_CHECK = 3;
const NEVER = Number.POSITIVE_INFINITY;
const CHIPS = ['M1', 'M2', 'M3', 'M4', 'M5'];
/** Share of the machines that serve each model; the last one has a dozen machines. */
const MODELS: readonly (readonly [string, number])[] = [
  ['small', 0.35],
  ['medium', 0.28],
  ['large', 0.2],
  ['coder', 0.1],
  ['vision', 0.05],
  ['rare', 0.014],
  ['rarest', 0.006],
];
/** Machines without a fault: share of failed requests, disconnects and trust losses per hour, deviation of the speed. */
const BASE = { failures: 0.005, departures: 0.01, trustLosses: 0.0005, speedDeviation: 0.12 };

export function simulateRelease(options: {
  readonly seed: number;
  readonly machines: number;
  readonly fault: ReleaseFault | null;
  readonly policy?: RolloutPolicy;
  readonly isUrgent?: boolean;
  readonly maxHours?: number;
}): SimulationResult {
  const { seed, machines: count, fault, policy = DEFAULT_ROLLOUT_POLICY, isUrgent = false, maxHours = 120 } = options;
  const random = randomNumbers(seed);
  const normal = (): number => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  const machines = Array.from({ length: count }, (_, index) => newMachine(index, random));
  const records = new Map<string, Record>();
  let rollout: Rollout = {
    version: VERSION,
    state: 'active',
    stage: 0,
    startedAt: 0,
    stageStartedAt: 0,
    isUrgent,
    evidenceSince: 0,
    endedAt: null,
    reason: null,
    changedBy: 'coordinator',
  };
  let networkLoss = 0;
  let modelLoss = 0;
  let now = 0;
  let hasEnded = false;
  for (; now < maxHours * HOUR && !hasEnded; now += TICK_MS) {
    for (const machine of machines) advance(machine);
    const fleet = fleetOf(machines, now);
    const updating = reservedSlots(records.values(), now);
    for (const machine of machines) if (!machine.isManual && machine.asksAt <= now && isUp(machine, now)) ask(machine, fleet, updating);
    for (const machine of machines) observe(machine);
    measureLoss();
    if ((now / TICK_MS) % TICKS_PER_CHECK !== 0) continue;
    const { step } = checkRollout(rollout, policy, {
      fleet,
      machines: [...records.values()],
      trustedOwners: new Set(),
      machinesByOwner: fleet.machinesByOwner,
      noAccount: 'no account',
      now,
      startedAt: -HOUR,
    });
    if (step.kind === 'halt') {
      rollout = { ...rollout, state: 'halted', reason: step.reason };
      hasEnded = true;
    } else if (step.kind === 'complete') {
      rollout = { ...rollout, state: 'complete' };
      hasEnded = true;
    } else if (step.kind === 'advance') {
      rollout = { ...rollout, stage: rollout.stage + 1, stageStartedAt: now };
    }
  }
  // Machines with an offer still switch after a halt.
  for (const end = now + HOUR; rollout.state === 'halted' && now < end; now += TICK_MS) {
    for (const machine of machines) advance(machine);
    measureLoss();
  }
  const offered = [...records.values()].filter(({ part }) => part === 'updated').length / count;
  const outcome = rollout.state === 'active' ? 'unfinished' : (rollout.state as 'complete' | 'halted');
  return { outcome, hours: (now - (outcome === 'halted' ? HOUR : 0)) / HOUR, offered, networkLoss, modelLoss, reason: rollout.reason };

  function advance(machine: SimulatedMachine): void {
    const isFaulty = fault !== null && (fault.affects?.(machine) ?? true);
    if (machine.switchesAt <= now) {
      machine.switchesAt = NEVER;
      machine.isOnVersion = true;
      machine.isFaulty = isFaulty;
      if (isFaulty && fault.isLost === true) machine.isLost = true;
      machine.returnsAt = now + (isFaulty && fault.failsTrial === true ? 5 * MINUTE : (1 + 2 * random()) * MINUTE);
    }
    if (machine.returnsAt <= now) {
      machine.returnsAt = NEVER;
      if (machine.isFaulty && fault?.failsTrial === true) {
        machine.isOnVersion = false;
        machine.isFaulty = false;
        machine.hasFailed = true;
      }
      if (machine.isFaulty && fault?.losesTrust === true) machine.trust = 0;
    }
    if (!machine.isLost && random() < BASE.departures * (TICK_MS / HOUR)) machine.awayUntil = now + (0.1 + 6 * random()) * HOUR;
    if (random() < BASE.trustLosses * (TICK_MS / HOUR)) machine.trust = 1;
  }

  /** Considers earlier offers of the same moment, as the database does. */
  function ask(machine: SimulatedMachine, fleet: Fleet, updating: ReservedSlots): void {
    machine.asksAt = now + 4 * HOUR * (0.75 + 0.5 * random());
    if (machine.isOnVersion || machine.switchesAt !== NEVER) return;
    const traits = { providerId: machine.id, chipFamily: machine.chip, models: machine.models, slots: machine.slots };
    const earlier = records.get(`updated ${machine.id}`) ?? null;
    const question = { rollout, rules: stageRules(rollout, policy), machine: traits, isCanary: false, isOwnerRequest: false, fleet, now };
    if (whyNotOffered({ ...question, earlier, updating }) !== null) return;
    records.delete(`control ${machine.id}`);
    records.set(`updated ${machine.id}`, newRecord(machine, 'updated'));
    reserve(updating, machine);
    machine.switchesAt = now + (2 + 10 * random()) * MINUTE;
    const candidates = machines
      .filter((one) => isUp(one, now))
      .map((one) => ({
        machine: one,
        providerId: one.id,
        chipFamily: one.chip,
        isUpdated: records.has(`updated ${one.id}`),
        sampledAt: records.get(`control ${one.id}`)?.at ?? null,
      }));
    for (const { machine: control } of pickControls({ ...traits, version: VERSION }, candidates, now))
      records.set(`control ${control.id}`, newRecord(control, 'control'));
  }

  function observe(machine: SimulatedMachine): void {
    for (const part of ['updated', 'control'] as const) {
      const record = records.get(`${part} ${machine.id}`);
      if (record === undefined) continue;
      record.hasFailed = machine.hasFailed;
      if (!isUp(machine, now)) continue;
      record.seenAt = now;
      record.onVersionAt = machine.isOnVersion ? (record.onVersionAt ?? now) : null;
      record.trust = machine.trust;
      record.isBlocked = machine.trust === 0;
      if (record.isBlocked) continue;
      const rate = BASE.failures + (machine.isFaulty ? (fault?.failureRate ?? 0) : 0);
      const requests = machine.requestsPerHour * (TICK_MS / HOUR);
      const whole = Math.floor(requests) + (random() < requests % 1 ? 1 : 0);
      record.attempts += whole;
      for (let index = 0; index < whole; index++) if (random() < rate) record.failures++;
      if (part === 'control' || machine.isOnVersion)
        record.speedRatio ??= Math.exp(BASE.speedDeviation * normal()) * (machine.isFaulty ? (fault?.speed ?? 1) : 1);
    }
  }

  function newRecord(machine: SimulatedMachine, part: Record['part']): Record {
    return {
      providerId: machine.id,
      chipFamily: machine.chip,
      models: machine.models,
      slots: machine.slots,
      part,
      at: now,
      seenAt: now,
      onVersionAt: null,
      hasFailed: false,
      isBlocked: false,
      trustBefore: machine.trust,
      trust: machine.trust,
      isRestricted: false,
      attempts: 0,
      failures: 0,
      speedRatio: null,
      owner: machine.id,
      isVolunteer: false,
    };
  }

  function measureLoss(): void {
    let lost = 0;
    let all = 0;
    const models = new Map<string, { lost: number; all: number; machines: number }>();
    for (const machine of machines) {
      if (machine.awayUntil > now && !machine.isLost) continue;
      const part = lossOf(machine, fault) * machine.slots;
      lost += part;
      all += machine.slots;
      for (const model of machine.models) {
        const sums = models.get(model) ?? { lost: 0, all: 0, machines: 0 };
        models.set(model, { lost: sums.lost + part, all: sums.all + machine.slots, machines: sums.machines + (part > 0 ? 1 : 0) });
      }
    }
    networkLoss = Math.max(networkLoss, lost / all);
    for (const { lost: ofModel, all: slots, machines: count } of models.values())
      if (count > 1) modelLoss = Math.max(modelLoss, ofModel / slots);
  }
}

function reserve(updating: ReservedSlots, { slots, chip, models }: SimulatedMachine): void {
  const writable = updating as { slots: number; byModel: Map<string, number>; byChip: Map<string, number> };
  writable.slots += slots;
  writable.byChip.set(chip, (writable.byChip.get(chip) ?? 0) + slots);
  for (const model of models) writable.byModel.set(model, (writable.byModel.get(model) ?? 0) + slots);
}

/** Share of a machine's capacity that the release costs at this moment. */
function lossOf({ isOnVersion, isLost, isFaulty, trust, returnsAt }: SimulatedMachine, fault: ReleaseFault | null): number {
  if (!isOnVersion) return 0;
  if (isLost || returnsAt !== NEVER || (isFaulty && trust === 0)) return 1;
  return isFaulty ? 1 - (fault?.speed ?? 1) * (1 - (fault?.failureRate ?? 0)) : 0;
}

function isUp(machine: SimulatedMachine, now: number): boolean {
  return !machine.isLost && machine.awayUntil <= now && machine.returnsAt === NEVER;
}

function fleetOf(machines: readonly SimulatedMachine[], now: number): Fleet {
  const fleet = {
    machines: 0,
    availableMachines: 0,
    machinesByOwner: new Map<string, number>(),
    slots: 0,
    machinesByChip: new Map<string, number>(),
    machinesByVersion: new Map<string, number>(),
    slotsByModel: new Map<string, number>(),
    slotsByChip: new Map<string, number>(),
  };
  const add = (map: Map<string, number>, key: string, value: number): void => void map.set(key, (map.get(key) ?? 0) + value);
  for (const machine of machines) {
    if (!isUp(machine, now)) continue;
    fleet.machines++;
    add(fleet.machinesByChip, machine.chip, 1);
    add(fleet.machinesByVersion, machine.isOnVersion ? VERSION : '1.0.0', 1);
    if (machine.trust === 0) continue;
    fleet.slots += machine.slots;
    add(fleet.slotsByChip, machine.chip, machine.slots);
    for (const model of machine.models) add(fleet.slotsByModel, model, machine.slots);
  }
  return fleet;
}

function newMachine(index: number, random: () => number): SimulatedMachine {
  const chip = CHIPS[Math.floor(random() * CHIPS.length)] ?? 'M1';
  const draw = random();
  let sum = 0;
  const model =
    MODELS.find(([, share]) => {
      sum += share;
      return draw < sum;
    })?.[0] ?? 'small';
  return {
    id: `machine-${index}`,
    chip,
    models: random() < 0.2 && model !== 'small' ? [model, 'small'] : [model],
    slots: [1, 2, 4][Math.floor(random() * 3)] ?? 1,
    isManual: random() < 0.1,
    requestsPerHour: 10 + 40 * random(),
    asksAt: 4 * HOUR * random(),
    awayUntil: random() < 0.05 ? 3 * HOUR * random() : 0,
    seenAt: 0,
    trust: random() < 0.8 ? 2 : 1,
    switchesAt: NEVER,
    returnsAt: NEVER,
    isOnVersion: false,
    isFaulty: false,
    isLost: false,
    hasFailed: false,
  };
}

/** Mulberry32: numbers in [0, 1). */
function randomNumbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
