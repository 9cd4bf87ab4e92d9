/** Decides whether a rollout halts, advances to its next stage, completes, or stays. Pure. Called by `RolloutChecks`. */
import type { RolloutComparison, RolloutMeasure, RolloutPolicy } from '@inference/formats';
import { compareHealth } from './health-comparison.js';
import {
  type ComparedMachine,
  type Fleet,
  isMissing,
  isSettled,
  type Rollout,
  reservesCapacity,
  type StageRules,
  stageRules,
} from './rollout.js';

export type RolloutStep =
  | { readonly kind: 'halt'; readonly reason: string }
  | { readonly kind: 'advance' }
  | { readonly kind: 'complete' }
  /** `waitingFor`: sentence for the operator. */
  | { readonly kind: 'stay'; readonly waitingFor: string };

export interface RolloutCheck {
  readonly step: RolloutStep;
  readonly comparisons: readonly RolloutComparison[];
  /** Number of machines that run the version, as counted by `isSettled`. */
  readonly settledMachines: number;
}

/** Input of the decision. Times in milliseconds since 1970. */
export interface RolloutFacts {
  readonly fleet: Fleet;
  readonly machines: readonly ComparedMachine[];
  /** Owners that the operator trusts, by `ownerKey`. */
  readonly trustedOwners: ReadonlySet<string>;
  /** Machines that can get jobs, by owner, for the largest owners. Keys: `ownerKey`. */
  readonly machinesByOwner: ReadonlyMap<string, number>;
  /** `ownerKey` shared by all machines without an account. */
  readonly noAccount: string;
  readonly now: number;
  /** When this coordinator started. */
  readonly startedAt: number;
}

/** Share of the fleet on the version that completes the last stage before it is overdue. */
const COMPLETE_SHARE = 0.8;
/** Time for agents to reconnect after a coordinator starts. Until then the fleet looks too small. */
const START_MS = 10 * 60_000;
/** Weak evidence, or too few updated machines, delay the next step until this multiple of the soak time (minimum time of a stage). */
const MAX_SOAK_FACTOR = 2;

export function checkRollout(rollout: Rollout, policy: RolloutPolicy, facts: RolloutFacts): RolloutCheck {
  const { fleet, machines, trustedOwners, noAccount, now, startedAt } = facts;
  const isStarting = now - startedAt < START_MS;
  // While machines reconnect, the first ones must not be mistaken for the whole network.
  const provenOwners = isStarting ? trustedOwners : new Set([...trustedOwners, ...largeOwners(facts)]);
  const comparisons = compareHealth(machines, { fleetSize: fleet.machines, provenOwners, noAccount, now });
  const settledMachines = machines.filter((machine) => isSettled(machine, now)).length;
  const worse = comparisons.filter(({ verdict }) => verdict === 'worse');
  let step: RolloutStep;
  if (worse.length > 0) step = { kind: 'halt', reason: worse.slice(0, MAX_REASONS).map(comparisonText).join(' ') };
  else if (isStarting) step = { kind: 'stay', waitingFor: 'The coordinator has just started; machines are reconnecting.' };
  else if (fleet.machines === 0) step = { kind: 'stay', waitingFor: 'No machine is connected.' };
  else step = nextStep(rollout, stageRules(rollout, policy), facts, { comparisons, settledMachines });
  return { step, comparisons, settledMachines };
}

/** The step of a rollout whose updated machines are not worse. */
function nextStep(
  rollout: Rollout,
  rules: StageRules,
  { fleet, machines, now }: RolloutFacts,
  { comparisons, settledMachines }: Pick<RolloutCheck, 'comparisons' | 'settledMachines'>,
): RolloutStep {
  const soakedMs = now - rollout.stageStartedAt;
  if (soakedMs < rules.soakMs) return { kind: 'stay', waitingFor: `${minutesText(rules.soakMs - soakedMs)} of this stage remain.` };
  const isOverdue = soakedMs >= rules.soakMs * MAX_SOAK_FACTOR;
  const concern = comparisons.find(({ verdict }) => verdict === 'concern');
  // Among dozens of comparisons, weak evidence may be chance. More machines give more evidence, and capacity limits bound the damage.
  if (concern !== undefined && !isOverdue) {
    return { kind: 'stay', waitingFor: `Updated machines may be worse. ${comparisonText(concern)}` };
  }
  if (rules.isLast) {
    const onVersion = fleet.machinesByVersion.get(rollout.version) ?? 0;
    if (isOverdue || onVersion >= fleet.machines * COMPLETE_SHARE) return { kind: 'complete' };
    return { kind: 'stay', waitingFor: `${onVersion} of ${fleet.machines} machines run the version.` };
  }
  // A small fleet may have fewer machines in the stage than the policy requires.
  const minMachines = Math.min(rules.minMachines, Math.ceil((fleet.machines * rules.percent) / 100));
  if (settledMachines >= minMachines) return { kind: 'advance' };
  // Machines missing for long, for example sold ones, no longer reserve capacity and must not block the rollout.
  const missing = machines.filter((machine) => reservesCapacity(machine, now) && isMissing(machine, now)).length;
  // When overdue, few updated machines are enough, because owners may disable updates. Many missing machines still block.
  if (isOverdue && missing * 2 <= settledMachines) return { kind: 'advance' };
  const updated = `${settledMachines} of at least ${minMachines} ${minMachines === 1 ? 'machine has' : 'machines have'} updated`;
  return { kind: 'stay', waitingFor: missing === 0 ? `${updated}.` : `${updated}, and ${missing} did not come back.` };
}

/** Maximum comparisons in the reason of a halt. */
const MAX_REASONS = 3;

const SUBJECTS: Readonly<Record<Exclude<RolloutMeasure, 'failed_requests' | 'slower'>, string>> = {
  missing: 'did not come back',
  trust_lost: 'lost their trust level',
  restricted: 'were restricted or quarantined',
};

/** The machines of an owner with at least this share are counted individually. */
const LARGE_OWNER_SHARE = 0.5;

/**
 * Owners of at least half of the machines. Machines without an account count only if they are the whole network.
 *
 * Includes machines lost to the version, because a bad version must not make its owner look small.
 */
function largeOwners({ fleet, machines, machinesByOwner, noAccount, now }: RolloutFacts): string[] {
  const lost = machines.filter((machine) => machine.part === 'updated' && (isMissing(machine, now) || machine.isRestricted));
  const total = fleet.availableMachines + lost.length;
  const counts = new Map(machinesByOwner);
  for (const { owner } of lost) counts.set(owner, (counts.get(owner) ?? 0) + 1);
  return [...counts].filter(([owner, count]) => count >= total * (owner === noAccount ? 1 : LARGE_OWNER_SHARE)).map(([owner]) => owner);
}

/** Sentence about one comparison, for operators. */
export function comparisonText({ measure, cohort, updated, others }: RolloutComparison): string {
  const where = cohort === null ? '' : cohort.kind === 'chip' ? `On ${cohort.name}: ` : `With ${cohort.name}: `;
  switch (measure) {
    case 'failed_requests':
      return `${where}Updated machines failed ${formatPercent(updated.value)} of ${updated.count} requests, the others ${formatPercent(others.value)} of ${others.count}.`;
    case 'slower':
      return `${where}Updated machines generate at ${formatPercent(updated.value)} of their earlier speed, the others at ${formatPercent(others.value)}.`;
    default:
      return `${where}${updated.bad} of ${updated.count} updated machines ${SUBJECTS[measure]}; of the others, ${others.bad} of ${others.count}.`;
  }
}

function formatPercent(share: number | null): string {
  return share === null ? 'none' : `${Math.round(share * 1000) / 10} %`;
}

function minutesText(ms: number): string {
  const minutes = Math.ceil(ms / 60_000);
  return minutes < 120 ? `${minutes} ${minutes === 1 ? 'minute' : 'minutes'}` : `${Math.round(minutes / 60)} hours`;
}
