/** Decides whether a machine is offered a version during its rollout. Pure. `RolloutService` calls {@link whyNotOffered}. */
import { createHash } from 'node:crypto';
import { type ComparedMachine, type Fleet, type MachineTraits, type Rollout, reservesCapacity, type StageRules } from './rollout.js';

/** Why the machine is not offered the version now. */
export type NotOffered =
  /** The rollout is paused, halted or unknown, so no machine is offered the version. */
  | 'stopped'
  /** The current stage does not include the machine. */
  | 'later_stage'
  /** Too many slots of the network, a model or a chip family are already reserved by this update. */
  | 'capacity'
  /** The version failed on this machine before. */
  | 'failed_here';

export interface OfferInput {
  readonly rollout: Pick<Rollout, 'version' | 'state'>;
  readonly rules: StageRules;
  readonly machine: MachineTraits;
  /** Whether the owner or the operator chose this machine for the first stage. */
  readonly isCanary: boolean;
  /** Whether the owner requested this version now, and the policy permits it. */
  readonly isOwnerRequest: boolean;
  readonly fleet: Fleet;
  /** Earlier offer of this version to the machine; null: none. */
  readonly earlier: ComparedMachine | null;
  /** Slots that are reserved by machines with an offer of this version. */
  readonly updating: ReservedSlots;
  readonly now: number;
}

/** Null: the machine is offered the version. */
export function whyNotOffered(input: OfferInput): NotOffered | null {
  const { rollout, rules, machine, isCanary, isOwnerRequest, fleet, earlier, updating, now } = input;
  if (rollout.state !== 'active') return 'stopped';
  if (earlier?.hasFailed === true && !isOwnerRequest) return 'failed_here';
  // The machine's slots are already reserved. An agent that asks again must get the same answer.
  if (earlier !== null && reservesCapacity(earlier, now)) return null;
  if (!isCanary && !isOwnerRequest && !isInStage(rollout.version, machine, rules, fleet)) return 'later_stage';
  // Not limited by capacity, because an owner may restart the machine at any time anyway.
  return isOwnerRequest || hasCapacity(machine, rules, fleet, updating) ? null : 'capacity';
}

/** Minimum expected machines per chip family in each stage, so that a fault of one family is found early. */
const MIN_MACHINES_PER_CHIP = 2;
/** Smaller chip families are treated as 20 machines, so that {@link MIN_MACHINES_PER_CHIP} is at most a tenth of them. */
const MIN_FAMILY_SIZE = 20;

/** Whether the current stage includes the machine. */
export function isInStage(
  version: string,
  machine: Pick<MachineTraits, 'providerId' | 'chipFamily'>,
  rules: StageRules,
  fleet: Fleet,
): boolean {
  const family = Math.max(MIN_FAMILY_SIZE, fleet.machinesByChip.get(machine.chipFamily) ?? 0);
  return rolloutPosition(machine.providerId, version) < Math.max(rules.percent / 100, MIN_MACHINES_PER_CHIP / family);
}

/** Pseudorandom position of a machine in a version's rollout, in [0, 1). Each version has another order. */
export function rolloutPosition(key: string, version: string): number {
  return createHash('sha256').update(`inference/rollout/v1\0${version}\0${key}`).digest().readUIntBE(0, 6) / 2 ** 48;
}

/** Slots of machines that are updating, missing, or blocked since the update, and so may be unavailable because of it. */
export interface ReservedSlots {
  readonly slots: number;
  readonly byModel: ReadonlyMap<string, number>;
  readonly byChip: ReadonlyMap<string, number>;
}

export function reservedSlots(compared: Iterable<ComparedMachine>, now: number): ReservedSlots {
  let slots = 0;
  const byModel = new Map<string, number>();
  const byChip = new Map<string, number>();
  for (const machine of compared) {
    if (!reservesCapacity(machine, now)) continue;
    slots += machine.slots;
    byChip.set(machine.chipFamily, (byChip.get(machine.chipFamily) ?? 0) + machine.slots);
    for (const model of machine.models) byModel.set(model, (byModel.get(model) ?? 0) + machine.slots);
  }
  return { slots, byModel, byChip };
}

/** Whether the capacity limits of the network, chip family and models permit another machine. */
function hasCapacity({ slots, chipFamily, models }: MachineTraits, rules: StageRules, fleet: Fleet, updating: ReservedSlots): boolean {
  // Each limit admits a first machine of any size. Otherwise small cohorts could never update.
  const admits = (used: number, all: number, percent: number): boolean => used === 0 || (used + slots) * 100 <= all * percent;
  if (!admits(updating.slots, fleet.slots, rules.maxNetworkPercent)) return false;
  if (!admits(updating.byChip.get(chipFamily) ?? 0, fleet.slotsByChip.get(chipFamily) ?? 0, rules.maxCohortPercent)) return false;
  return models.every((model) => admits(updating.byModel.get(model) ?? 0, fleet.slotsByModel.get(model) ?? 0, rules.maxCohortPercent));
}
