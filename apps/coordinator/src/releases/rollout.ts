/** Types and time limits of a rollout, the spread of one agent version over the machines. Times are in milliseconds since 1970. */
import type { RolloutPolicy, RolloutState } from '@inference/formats';

export interface Rollout {
  readonly version: string;
  readonly state: RolloutState;
  /** Index into the policy's stages. */
  readonly stage: number;
  readonly startedAt: number;
  readonly stageStartedAt: number;
  readonly isUrgent: boolean;
  /** Machines offered the version earlier count neither for comparisons nor for capacity: the operator saw them and resumed. */
  readonly evidenceSince: number;
  readonly endedAt: number | null;
  /** Sentence: why the rollout was halted or paused. */
  readonly reason: string | null;
  /** `coordinator`, or the operator. */
  readonly changedBy: string;
}

/** Facts of a machine that an offer depends on. */
export interface MachineTraits {
  readonly providerId: string;
  readonly chipFamily: string;
  readonly models: readonly string[];
  readonly slots: number;
}

/** A compared machine. `updated`: was offered or runs the version. `control`: sampled when a similar machine was offered the version. */
export interface ComparedMachine extends MachineTraits {
  readonly part: 'updated' | 'control';
  /** Time of the offer, or of the sampling. */
  readonly at: number;
  /** Last time that the machine was connected. */
  readonly seenAt: number;
  /** Whether the machine ran this or a later version when last seen. */
  readonly isOnVersion: boolean;
  /** The agent reported that the version failed its trial. */
  readonly hasFailed: boolean;
  /** Whether the network gave the machine no jobs when last seen, for example after a quarantine. The owner's pauses do not count. */
  readonly isBlocked: boolean;
  /** 0 none, 1 self_signed, 2 hardware; null: unknown. */
  readonly trustBefore: number | null;
  readonly trust: number | null;
  /** Restricted for bad reputation, or quarantined. */
  readonly isRestricted: boolean;
  /** Requests since `at`. */
  readonly attempts: number;
  /** Requests since `at` that failed by the machine's fault. */
  readonly failures: number;
  /** Decode rate divided by the rate before the offer, for the same model; null: unknown. */
  readonly speedRatio: number | null;
  /** Key of the owner, by `ownerKey`. */
  readonly owner: string;
  /** Whether the owner chose the version, ahead of the stage and without the operator. */
  readonly isVolunteer: boolean;
}

/** Owners whose machines must be worse before a rollout halts: no two accounts can halt one. */
export const MIN_OWNERS = 3;

/** Capacity of the network, in slots that take jobs, and machines connected. */
export interface Fleet {
  readonly machines: number;
  /** Machines that can get jobs. */
  readonly availableMachines: number;
  /** Their number by owner, for the largest owners. Keys: `ownerHash`. */
  readonly machinesByOwner: ReadonlyMap<string, number>;
  readonly machinesByChip: ReadonlyMap<string, number>;
  readonly machinesByVersion: ReadonlyMap<string, number>;
  readonly slots: number;
  readonly slotsByModel: ReadonlyMap<string, number>;
  readonly slotsByChip: ReadonlyMap<string, number>;
}

const MINUTE_MS = 60_000;
/** A machine that left for its update and is not back after this time counts as missing. The trial takes five minutes. */
export const RETURN_MS = 10 * MINUTE_MS;
/** Only a departure within this time after the offer is attributed to the update. */
export const DEPARTURE_MS = 120 * MINUTE_MS;
/** Time to download, check and switch. Afterwards the offer no longer reserves capacity. */
export const OFFER_MS = 60 * MINUTE_MS;
/** Minimum time on the version before a machine counts for the stage. */
export const SETTLE_MS = 10 * MINUTE_MS;
/** A missing machine reserves capacity for this time. */
export const MISSING_MS = 24 * 60 * MINUTE_MS;
/** Maximum time since a machine was seen to count as connected. Machines are recorded every minute. */
export const CONNECTED_MS = 3 * MINUTE_MS;

export function isConnected({ seenAt }: ComparedMachine, now: number): boolean {
  return now - seenAt < CONNECTED_MS;
}

/** Whether the machine disconnected soon after the offer or sampling and did not return in time. */
export function isMissing({ at, seenAt }: ComparedMachine, now: number): boolean {
  return now - seenAt >= RETURN_MS && seenAt - at <= DEPARTURE_MS;
}

/** Whether the version makes the machine's slots unavailable now, or may do so at any moment. */
export function reservesCapacity(machine: ComparedMachine, now: number): boolean {
  if (machine.part === 'control') return false;
  if (isMissing(machine, now)) return now - machine.at < MISSING_MS;
  if (machine.isOnVersion) return isConnected(machine, now) ? machine.isBlocked : now - machine.at < OFFER_MS;
  return !machine.hasFailed && now - machine.at < OFFER_MS;
}

/** Whether the machine has run the version long enough to count for the next stage. */
export function isSettled(machine: ComparedMachine, now: number): boolean {
  return machine.part === 'updated' && machine.isOnVersion && now - machine.at >= SETTLE_MS && !isMissing(machine, now);
}

/** Stages of an urgent rollout last one eighth of the policy's time, and twice the capacity may update at once. */
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

/** Rules of the rollout's stage. If the policy has fewer stages by now, the last stage applies. */
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
