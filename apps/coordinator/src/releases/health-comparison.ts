/** Compares updated machines with the others: overall, and within each chip family and model. Pure. */
import type { RolloutComparison, RolloutMeasure } from '@inference/formats';
import { type ComparedMachine, isConnected, isMissing } from './rollout.js';
import { type Cluster, fisherExact, higherRate, lowerMean, type Proportion } from './statistical-tests.js';

/**
 * Haybittle-Peto rule: a comparison repeated every minute may stop a rollout only below this p-value, divided by the number of cohorts
 * (Bonferroni) within a cohort.
 */
const STOP_P = 0.001;
/** Below this p-value, divided likewise, the next stage waits. */
const CONCERN_P = 0.05;
/** For a majority of bad machines, less evidence suffices: the damage is large and the groups are still small. */
const MAJORITY_P = 0.01;
/** A small fleet has too few machines for more certainty. */
const SMALL_FLEET_MAJORITY_P = 0.1;
const MAJORITY_SHARE = 0.5;
/** Smaller differences stop nothing, however certain. Shares of machines, and of requests. */
const MIN_SHARE_DIFFERENCE = 0.05;
const MIN_FAILURE_DIFFERENCE = 0.02;
/** Decode rate relative to the one before, compared with the others. */
const MAX_SPEED_RATIO = 0.85;
/** Minimum standard deviation of the logarithm of a machine's relative decode rate. */
const SPEED_DEVIATION = 0.1;
/** Machines and requests that a rate needs, and machines that a mean needs. */
const MIN_RATE_MACHINES = 5;
const MIN_RATE_REQUESTS = 100;
const MIN_SPEED_MACHINES = 8;
/** A fleet below this size stops at two bad machines, a larger one at three. */
const SMALL_FLEET = 12;

const MEASURES: readonly RolloutMeasure[] = ['missing', 'trust_lost', 'restricted', 'failed_requests', 'slower'];

/** `fleetMachines`: machines connected now. The first comparisons, with `cohort` null, are of all machines. */
export function compareHealth(machines: readonly ComparedMachine[], fleetMachines: number, now: number): RolloutComparison[] {
  const cohorts = cohortsOf(machines);
  const isSmall = fleetMachines < SMALL_FLEET;
  const shared = { minBad: isSmall ? 2 : 3, majorityP: isSmall ? SMALL_FLEET_MAJORITY_P : MAJORITY_P, now };
  const tests = Math.max(1, cohorts.length);
  const overall = compareAll(machines, null, { ...shared, stopP: STOP_P, concernP: CONCERN_P });
  const rules = { ...shared, stopP: STOP_P / tests, concernP: CONCERN_P / tests };
  return [...overall, ...cohorts.flatMap(({ cohort, members }) => compareAll(members, cohort, rules))];
}

type Cohort = NonNullable<RolloutComparison['cohort']>;

/** Cohorts with an updated machine. */
function cohortsOf(machines: readonly ComparedMachine[]): { readonly cohort: Cohort; readonly members: ComparedMachine[] }[] {
  const found = new Map<string, { cohort: Cohort; members: ComparedMachine[]; hasUpdated: boolean }>();
  const add = (cohort: Cohort, machine: ComparedMachine): void => {
    const key = `${cohort.kind} ${cohort.name}`;
    const entry = found.get(key) ?? { cohort, members: [], hasUpdated: false };
    found.set(key, entry);
    entry.members.push(machine);
    entry.hasUpdated ||= machine.part === 'updated';
  };
  for (const machine of machines) {
    add({ kind: 'chip', name: machine.chipFamily }, machine);
    for (const name of machine.models) add({ kind: 'model', name }, machine);
  }
  return [...found.values()].filter(({ hasUpdated }) => hasUpdated);
}

interface Rules {
  readonly minBad: number;
  readonly majorityP: number;
  readonly stopP: number;
  readonly concernP: number;
  readonly now: number;
}

function compareAll(machines: readonly ComparedMachine[], cohort: Cohort | null, rules: Rules): RolloutComparison[] {
  const updated = machines.filter(({ part }) => part === 'updated');
  const others = machines.filter(({ part }) => part === 'control');
  return MEASURES.map((measure) => {
    const figures = figuresOf(measure, updated, others, rules.now);
    return { measure, cohort, ...figures, verdict: verdictOf(measure, figures, rules) };
  });
}

type Figures = Pick<RolloutComparison, 'updated' | 'others' | 'p'>;

function figuresOf(measure: RolloutMeasure, updated: readonly ComparedMachine[], others: readonly ComparedMachine[], now: number): Figures {
  switch (measure) {
    case 'missing':
    case 'trust_lost':
    case 'restricted': {
      const [a, b] = [proportionOf(measure, updated, now), proportionOf(measure, others, now)];
      return { updated: sharePart(a), others: sharePart(b), p: fisherExact(a, b) };
    }
    case 'failed_requests': {
      const [a, b] = [requestsOf(updated), requestsOf(others)];
      return { updated: requestPart(a), others: requestPart(b), p: higherRate(a, b) };
    }
    case 'slower': {
      const [a, b] = [speedsOf(updated), speedsOf(others)];
      return { updated: speedPart(a), others: speedPart(b), p: lowerMean(a, b, SPEED_DEVIATION) };
    }
    default:
      return measure satisfies never;
  }
}

function verdictOf(measure: RolloutMeasure, { updated, others, p }: Figures, rules: Rules): RolloutComparison['verdict'] {
  const { minBad, majorityP, stopP, concernP } = rules;
  if (measure === 'slower' || measure === 'failed_requests') {
    const enough = ({ machines, count }: Figures['updated']) =>
      measure === 'slower' ? machines >= MIN_SPEED_MACHINES : machines >= MIN_RATE_MACHINES && count >= MIN_RATE_REQUESTS;
    if (!enough(updated) || !enough(others) || updated.value === null || others.value === null) return 'not_enough_data';
    const isWorse =
      measure === 'slower' ? updated.value <= others.value * MAX_SPEED_RATIO : updated.value - others.value >= MIN_FAILURE_DIFFERENCE;
    if (!isWorse) return 'good';
    return p < stopP ? 'worse' : p < concernP ? 'concern' : 'good';
  }
  if (updated.value === null) return 'not_enough_data';
  const othersShare = others.value ?? 0;
  const difference = updated.value - othersShare;
  if (difference < MIN_SHARE_DIFFERENCE) return 'good';
  if (p < stopP) return 'worse';
  const isMajority = updated.bad >= minBad && updated.value >= MAJORITY_SHARE && othersShare <= updated.value / 2;
  if (isMajority && (p < majorityP || others.count < updated.count)) return 'worse';
  return p < concernP || (updated.bad >= minBad && others.count < updated.count) ? 'concern' : 'good';
}

function proportionOf(measure: 'missing' | 'trust_lost' | 'restricted', machines: readonly ComparedMachine[], now: number): Proportion {
  let bad = 0;
  let count = 0;
  for (const machine of machines) {
    const isBad = isBadMachine(measure, machine, now);
    if (isBad === null) continue;
    count++;
    if (isBad) bad++;
  }
  return { bad, count };
}

/** Null: the machine says nothing about the measure. A machine that has not updated yet says nothing about the version. */
function isBadMachine(measure: 'missing' | 'trust_lost' | 'restricted', machine: ComparedMachine, now: number): boolean | null {
  const isAway = isMissing(machine, now);
  if (measure === 'missing') {
    if (machine.part === 'control') return isAway;
    return machine.isOnVersion || machine.hasFailed || isAway ? machine.hasFailed || isAway : null;
  }
  if (!isConnected(machine, now) || (machine.part === 'updated' && !machine.isOnVersion)) return null;
  if (measure === 'restricted') return machine.isRestricted;
  return machine.trustBefore === null || machine.trust === null ? null : machine.trust < machine.trustBefore;
}

function requestsOf(machines: readonly ComparedMachine[]): Cluster[] {
  return machines
    .filter(({ part, isOnVersion, attempts }) => attempts > 0 && (part === 'control' || isOnVersion))
    .map(({ attempts, failures }) => ({ bad: Math.min(failures, attempts), count: attempts }));
}

/** Natural logarithms, because ratios multiply. */
function speedsOf(machines: readonly ComparedMachine[]): number[] {
  return machines.flatMap(({ part, isOnVersion, speedRatio }) =>
    speedRatio !== null && speedRatio > 0 && (part === 'control' || isOnVersion) ? [Math.log(speedRatio)] : [],
  );
}

function sharePart({ bad, count }: Proportion): Figures['updated'] {
  return { bad, count, machines: count, value: count === 0 ? null : bad / count };
}

function requestPart(clusters: readonly Cluster[]): Figures['updated'] {
  const bad = clusters.reduce((sum, one) => sum + one.bad, 0);
  const count = clusters.reduce((sum, one) => sum + one.count, 0);
  return { bad, count, machines: clusters.length, value: count === 0 ? null : bad / count };
}

function speedPart(logs: readonly number[]): Figures['updated'] {
  const value = logs.length === 0 ? null : Math.exp(logs.reduce((sum, one) => sum + one, 0) / logs.length);
  return { bad: 0, count: logs.length, machines: logs.length, value };
}
