/** Decides whether a machine is offered a version that is being rolled out. Pure. */
import { createHash } from 'node:crypto';
import { type ComparedMachine, type Fleet, type MachineTraits, type Rollout, reservesCapacity, type StageRules } from './rollout.js';

/** Why a machine is not offered the version now. */
export type NotOffered =
  /** Paused or halted: nobody is offered the version. */
  | 'stopped'
  /** The stage does not include the machine yet. */
  | 'later_stage'
  /** Too many machines of the network, of a model or of a chip family are updating or missing. */
  | 'capacity'
  /** The version failed on this machine before. */
  | 'failed_here';

export interface OfferQuestion {
  readonly rollout: Pick<Rollout, 'version' | 'state'>;
  readonly rules: StageRules;
  readonly machine: MachineTraits;
  /** The owner or the operator chose this machine for the first stage. */
  readonly isCanary: boolean;
  /** The owner asked for this version now, and the policy permits this. */
  readonly isOwnerRequest: boolean;
  readonly fleet: Fleet;
  /** The machine's earlier offer of this version; null: none. */
  readonly earlier: ComparedMachine | null;
  /** Capacity reserved by the machines of the version. */
  readonly updating: Updating;
  readonly now: number;
}

/** Null: the machine is offered the version. */
export function whyNotOffered(question: OfferQuestion): NotOffered | null {
  const { rollout, rules, machine, isCanary, isOwnerRequest, fleet, earlier, updating, now } = question;
  if (rollout.state !== 'active') return 'stopped';
  if (earlier?.hasFailed === true && !isOwnerRequest) return 'failed_here';
  // Its capacity is reserved already. An agent that asks again must not be told otherwise.
  if (earlier !== null && reservesCapacity(earlier, now)) return null;
  if (!isCanary && !isOwnerRequest && !isInStage(rollout.version, machine, rules, fleet)) return 'later_stage';
  // Owners restart their machines as they like.
  return isOwnerRequest || hasCapacity(machine, rules, fleet, updating) ? null : 'capacity';
}

/** Small chip families get a larger share, so that a fault of one family shows in an early stage. */
const MIN_MACHINES_PER_CHIP = 2;
const MIN_FAMILY = 20;

export function isInStage(
  version: string,
  machine: Pick<MachineTraits, 'providerId' | 'chipFamily'>,
  rules: StageRules,
  fleet: Fleet,
): boolean {
  const family = Math.max(MIN_FAMILY, fleet.machinesByChip.get(machine.chipFamily) ?? 0);
  return bucketOf(machine.providerId, version) < Math.max(rules.percent / 100, MIN_MACHINES_PER_CHIP / family);
}

/** Position of a machine in the order of a version, from 0 to 1: stable for the version, different for the next one. */
export function bucketOf(key: string, version: string): number {
  return createHash('sha256').update(`inference/rollout/v1\0${version}\0${key}`).digest().readUIntBE(0, 6) / 2 ** 48;
}

/** Slots reserved by updating and missing machines. */
export interface Updating {
  readonly slots: number;
  readonly byModel: ReadonlyMap<string, number>;
  readonly byChip: ReadonlyMap<string, number>;
}

export function updatingMachines(compared: Iterable<ComparedMachine>, now: number): Updating {
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

/** A cohort of which nothing is updating always admits one machine: else small cohorts could never update. */
function hasCapacity({ slots, chipFamily, models }: MachineTraits, rules: StageRules, fleet: Fleet, updating: Updating): boolean {
  const admits = (used: number, all: number, percent: number): boolean => used === 0 || (used + slots) * 100 <= all * percent;
  if (!admits(updating.slots, fleet.slots, rules.maxNetworkPercent)) return false;
  if (!admits(updating.byChip.get(chipFamily) ?? 0, fleet.slotsByChip.get(chipFamily) ?? 0, rules.maxCohortPercent)) return false;
  return models.every((model) => admits(updating.byModel.get(model) ?? 0, fleet.slotsByModel.get(model) ?? 0, rules.maxCohortPercent));
}
