/** Types and time limits of a rollout: the spread of one agent version over the machines, in stages. Times in milliseconds since 1970. */
import type { RolloutPolicy, RolloutState } from '@inference/formats';

export interface Rollout {
  readonly version: string;
  readonly state: RolloutState;
  /** Index into the policy's stages. */
  readonly stage: number;
  readonly startedAt: number;
  readonly stageStartedAt: number;
  readonly isUrgent: boolean;
  /** Machines offered the version before this time are ignored: an operator has seen their results and resumed the halted rollout. */
  readonly evidenceSince: number;
  readonly endedAt: number | null;
  /** Sentence that explains why the rollout was halted or paused. */
  readonly reason: string | null;
  /** `coordinator`, or the operator's name. */
  readonly changedBy: string;
}

/** Facts of a machine on which an offer depends. */
export interface MachineTraits {
  readonly providerId: string;
  readonly chipFamily: string;
  readonly models: readonly string[];
  readonly slots: number;
}

/** A machine whose health is compared during a rollout. */
export interface ComparedMachine extends MachineTraits {
  /** `updated`: was offered the version or runs it. `control`: without the version, picked when a similar machine was offered it. */
  readonly part: 'updated' | 'control';
  /** Time of the offer, or of the pick as a control. Without an offer: when the machine was first seen with the version. */
  readonly at: number;
  /** When the machine was last connected. */
  readonly seenAt: number;
  /** When the machine was first seen with this or a later version; null: it did not run one when last seen. */
  readonly onVersionAt: number | null;
  /** Whether the agent reported that the version failed its trial. */
  readonly hasFailed: boolean;
  /** Whether the network gave the machine no jobs when last seen, for example because of a quarantine. Pauses by the owner do not count. */
  readonly isBlocked: boolean;
  /** 0 none, 1 self_signed, 2 hardware; null: unknown. */
  readonly trustBefore: number | null;
  readonly trust: number | null;
  /** Whether the machine is restricted by its reputation, or quarantined. */
  readonly isRestricted: boolean;
  /** Requests within a day of `at`; of an updated machine, only those on the version. */
  readonly attempts: number;
  /** Those of `attempts` that failed by the machine's fault. */
  readonly failures: number;
  /** Decode rate divided by the rate before the offer, with the same model; null: unknown. */
  readonly speedRatio: number | null;
  /** `ownerKey` of the owner. */
  readonly owner: string;
  /** Whether the owner chose the version before the stage included the machine, and without the operator. */
  readonly isVolunteer: boolean;
}

/** Minimum number of owners with worse machines before a rollout halts, so that no two accounts can halt one. */
export const MIN_OWNERS = 3;

/** Capacity of the network: connected machines, and slots of machines that can get jobs. */
export interface Fleet {
  readonly machines: number;
  /** Machines that can get jobs. */
  readonly availableMachines: number;
  /** Machines that can get jobs, by owner, for the largest owners. Keys: `ownerHash`. */
  readonly machinesByOwner: ReadonlyMap<string, number>;
  readonly machinesByChip: ReadonlyMap<string, number>;
  readonly machinesByVersion: ReadonlyMap<string, number>;
  readonly slots: number;
  readonly slotsByModel: ReadonlyMap<string, number>;
  readonly slotsByChip: ReadonlyMap<string, number>;
}

const MINUTE_MS = 60_000;
/** A machine that disconnects for its update and is away longer than this is missing. The trial takes five minutes. */
export const RETURN_MS = 10 * MINUTE_MS;
/** A disconnect later than this after the offer is not attributed to the update. */
export const DEPARTURE_MS = 120 * MINUTE_MS;
/** Time to download, verify and switch to the version. Afterwards the offer reserves no capacity while the machine is connected. */
export const OFFER_MS = 60 * MINUTE_MS;
/** Minimum time since a machine was first seen on the version before it counts for the stage. */
export const SETTLE_MS = 10 * MINUTE_MS;
/** How long after its offer a missing machine reserves capacity. */
export const MISSING_MS = 24 * 60 * MINUTE_MS;
/** A machine seen within this time counts as connected. Machines are recorded every minute. */
export const CONNECTED_MS = 3 * MINUTE_MS;

export function isConnected({ seenAt }: ComparedMachine, now: number): boolean {
  return now - seenAt < CONNECTED_MS;
}

/** Whether the machine disconnected soon after the offer or sampling, and did not return in time. */
export function isMissing({ at, seenAt }: ComparedMachine, now: number): boolean {
  return now - seenAt >= RETURN_MS && seenAt - at <= DEPARTURE_MS;
}

/** Whether the update makes the machine's slots unavailable, or may do so at any moment. */
export function reservesCapacity(machine: ComparedMachine, now: number): boolean {
  if (machine.part === 'control') return false;
  // A machine may have disconnected for its update at the end of `OFFER_MS`, and is missing only after `RETURN_MS`.
  if (!isConnected(machine, now)) return now - machine.at < MISSING_MS && machine.seenAt - machine.at <= DEPARTURE_MS;
  if (machine.onVersionAt !== null) return machine.isBlocked;
  return !machine.hasFailed && now - machine.at < OFFER_MS;
}

/** Whether the machine was first seen on the version at least {@link SETTLE_MS} ago, so that it counts for the next stage. */
export function isSettled(machine: ComparedMachine, now: number): boolean {
  const { part, onVersionAt } = machine;
  return part === 'updated' && onVersionAt !== null && now - onVersionAt >= SETTLE_MS && !isMissing(machine, now);
}

/** Stages of an urgent rollout take an eighth of the time, and twice the capacity may update at once. */
const URGENT_SOAK_DIVISOR = 8;
const URGENT_CAPACITY_FACTOR = 2;

export interface StageRules {
  readonly percent: number;
  readonly soakMs: number;
  readonly minMachines: number;
  readonly isLast: boolean;
  readonly maxNetworkPercent: number;
  readonly maxCohortPercent: number;
}

/** Rules of the rollout's current stage. If the policy now has fewer stages, the last one applies. */
export function stageRules({ stage, isUrgent }: Pick<Rollout, 'stage' | 'isUrgent'>, policy: RolloutPolicy): StageRules {
  const index = Math.min(stage, policy.stages.length - 1);
  const chosen = policy.stages[index];
  if (chosen === undefined) throw new Error('a rollout policy has at least one stage');
  const factor = isUrgent ? URGENT_CAPACITY_FACTOR : 1;
  return {
    percent: chosen.percent,
    soakMs: (chosen.soak_minutes * MINUTE_MS) / (isUrgent ? URGENT_SOAK_DIVISOR : 1),
    minMachines: chosen.min_machines,
    isLast: index === policy.stages.length - 1,
    maxNetworkPercent: Math.min(100, policy.max_updating_network_percent * factor),
    maxCohortPercent: Math.min(100, policy.max_updating_cohort_percent * factor),
  };
}
