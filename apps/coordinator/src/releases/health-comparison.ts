/**
 * `compareHealth` compares updated machines with the others: over all machines, and within each cohort (a chip family, or a model). Pure.
 *
 * Decides per measure whether the updated machines are worse, from p-values of statistical tests. A volunteer is an updated machine whose
 * owner chose the version.
 */
import type { RolloutComparison, RolloutMeasure } from '@inference/formats';
import { type ComparedMachine, isConnected, isMissing, MIN_OWNERS } from './rollout.js';
import { type Cluster, fisherExact, higherRate, limitWeights, lowerMean, type Proportion } from './statistical-tests.js';

/** Haybittle-Peto boundary for repeated tests: a smaller p-value halts the rollout. In cohorts, divided by their number (Bonferroni). */
const STOP_P = 0.001;
/** A smaller p-value delays the next stage. Divided in the same way. */
const CONCERN_P = 0.05;
/** Weaker boundary if at least half of the updated machines are bad, because waiting for more evidence would do more harm. */
const MAJORITY_P = 0.01;
/** Even weaker in a small fleet, because its few machines cannot give more certainty. */
const SMALL_FLEET_MAJORITY_P = 0.1;
const MAJORITY_SHARE = 0.5;
/** Minimum difference in the shares of bad machines. A smaller one is ignored, even if significant. */
const MIN_SHARE_DIFFERENCE = 0.05;
/** The same for the shares of failed requests. */
const MIN_FAILURE_DIFFERENCE = 0.02;
/** Updated machines are slower if their mean speed ratio is at most this fraction of that of the others. */
const MAX_SPEED_RATIO = 0.85;
/** Minimum standard deviation of logarithmic speed ratios, because small samples look too uniform. */
const MIN_LOG_SPEED_DEVIATION = 0.1;
/** Minimum machines per group for a failure rate. */
const MIN_RATE_MACHINES = 5;
/** Minimum requests per group for a failure rate. */
const MIN_RATE_REQUESTS = 100;
/** Minimum machines per group for a mean speed. */
const MIN_SPEED_MACHINES = 8;
/** In a fleet smaller than this, two bad machines can halt a rollout. In a larger one, three are needed. */
const SMALL_FLEET = 12;

/** Prefix of the key of a machine that is counted individually. */
const MACHINE_KEY = 'machine ';
const machineKey = ({ providerId }: ComparedMachine): string => MACHINE_KEY + providerId;
/** Number of owners with the worst machines, of which each pair is left out once. */
const MAX_SUSPECTS = 6;

const MEASURES: readonly RolloutMeasure[] = ['missing', 'trust_lost', 'restricted', 'failed_requests', 'slower'];

interface ComparisonContext {
  /** Number of connected machines. */
  readonly fleetSize: number;
  /** Owners whose machines are counted individually, because they are trusted or own most of the network. Keys: `ownerKey`. */
  readonly provenOwners: ReadonlySet<string>;
  /** Key shared by all machines without an account, which are no evidence of an independent owner. */
  readonly noAccount: string;
  readonly now: number;
}

/** One result per measure: first for all machines, with `cohort` null, then for each cohort. */
export function compareHealth(
  machines: readonly ComparedMachine[],
  { fleetSize, provenOwners, noAccount, now }: ComparisonContext,
): RolloutComparison[] {
  const cohorts = cohortsOf(machines);
  const isSmall = fleetSize < SMALL_FLEET;
  const shared = {
    minBad: isSmall ? 2 : 3,
    majorityP: isSmall ? SMALL_FLEET_MAJORITY_P : MAJORITY_P,
    now,
    hasOthers: machines.some(({ part, isVolunteer }) => part === 'control' || !isVolunteer),
    keyOf: (machine: ComparedMachine) => (provenOwners.has(machine.owner) ? machineKey(machine) : machine.owner),
    provenOwners,
    noAccount,
  };
  const tests = Math.max(1, cohorts.length);
  const overall = compareMeasures(machines, null, { ...shared, stopP: STOP_P, concernP: CONCERN_P });
  const rules = { ...shared, stopP: STOP_P / tests, concernP: CONCERN_P / tests };
  return [...overall, ...cohorts.flatMap(({ cohort, members }) => compareMeasures(members, cohort, rules))];
}

type Cohort = NonNullable<RolloutComparison['cohort']>;

/** Cohorts with at least one updated machine. */
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
  /** Whether there are machines whose owner did not choose the version. */
  readonly hasOthers: boolean;
  /** Key of a machine. Bad machines with the same key count once: an owner's machines vary together, and an owner may be dishonest. */
  readonly keyOf: (machine: ComparedMachine) => string;
  readonly provenOwners: ReadonlySet<string>;
  readonly noAccount: string;
}

function compareMeasures(machines: readonly ComparedMachine[], cohort: Cohort | null, rules: Rules): RolloutComparison[] {
  return MEASURES.map((measure) => {
    const byOwner = evaluate(measure, machines, rules);
    const isWorse = byOwner.verdict === 'worse' || isWorseWithoutAnyTwo(measure, machines, rules);
    return { measure, cohort, ...byOwner, verdict: isWorse ? 'worse' : byOwner.verdict };
  });
}

function evaluate(
  measure: RolloutMeasure,
  machines: readonly ComparedMachine[],
  rules: Rules,
): Figures & Pick<RolloutComparison, 'verdict'> {
  const updated = machines.filter(({ part }) => part === 'updated');
  const others = machines.filter(({ part }) => part === 'control');
  const { volunteerBadCount, badKeys, ...figures } = figuresOf(measure, updated, others, rules);
  return { ...figures, verdict: verdictOf(measure, figures, { volunteerBadCount, badKeys }, rules) };
}

/**
 * Whether the updated machines remain worse when any two of the {@link MAX_SUSPECTS} owners with the worst machines are left out.
 *
 * Owners could make their own machines look bad. Counts machines individually, which reveals faults when few owners have many machines.
 */
function isWorseWithoutAnyTwo(measure: RolloutMeasure, machines: readonly ComparedMachine[], rules: Rules): boolean {
  const singly = { ...rules, keyOf: machineKey };
  const isWorse = (some: readonly ComparedMachine[]): boolean => evaluate(measure, some, singly).verdict === 'worse';
  const { provenOwners, noAccount, now } = rules;
  const known = machines.filter(({ owner }) => owner !== noAccount || provenOwners.has(owner));
  if (!isWorse(known)) return false;
  const badness = new Map<string, number>();
  for (const machine of known) {
    if (machine.part === 'control' || provenOwners.has(machine.owner)) continue;
    badness.set(machine.owner, (badness.get(machine.owner) ?? 0) + badnessOf(measure, machine, now));
  }
  const suspects = [...badness].sort(([, a], [, b]) => b - a).slice(0, MAX_SUSPECTS);
  const without = (one: string, other: string) => known.filter(({ owner }) => owner !== one && owner !== other);
  return suspects.every(([one]) => suspects.every(([other]) => isWorse(without(one, other))));
}

/** Amount of evidence that a machine adds against the version. */
function badnessOf(measure: RolloutMeasure, machine: ComparedMachine, now: number): number {
  switch (measure) {
    case 'failed_requests':
      return machine.failures;
    case 'slower':
      return machine.speedRatio === null ? 0 : Math.max(0, 1 - machine.speedRatio);
    default:
      return isBadMachine(measure, machine, now) === true ? 1 : 0;
  }
}

type Figures = Pick<RolloutComparison, 'updated' | 'others' | 'p'>;

interface BadMachines {
  /** Keys of bad machines among the updated ones. */
  readonly badKeys: readonly string[];
  /** Number of these keys that only contain machines whose owner chose the version. */
  readonly volunteerBadCount: number;
}

function figuresOf(
  measure: RolloutMeasure,
  updated: readonly ComparedMachine[],
  others: readonly ComparedMachine[],
  rules: Rules,
): Figures & BadMachines {
  // Requests and speeds of volunteers are ignored if there are other machines.
  const rated = rules.hasOthers ? updated.filter(({ isVolunteer }) => !isVolunteer) : updated;
  switch (measure) {
    case 'missing':
    case 'trust_lost':
    case 'restricted': {
      const [a, b] = [proportionOf(measure, updated, rules), proportionOf(measure, others, rules)];
      return {
        updated: shareFigures(a),
        others: shareFigures(b),
        p: fisherExact(a, b),
        volunteerBadCount: a.volunteerBadCount,
        badKeys: a.badKeys,
      };
    }
    case 'failed_requests': {
      const [a, b] = [limitWeights(requestsOf(rated, rules)), limitWeights(requestsOf(others, rules))];
      const [updatedFigures, otherFigures] = [requestFigures(a), requestFigures(b)];
      const limit = (otherFigures.value ?? 0) + MIN_FAILURE_DIFFERENCE;
      const badKeys = a.flatMap(({ key, bad, count }) => (bad / count >= limit ? [key] : []));
      return { updated: updatedFigures, others: otherFigures, p: higherRate(a, b), volunteerBadCount: 0, badKeys };
    }
    case 'slower': {
      const ratedSpeeds = speedsOf(rated, rules);
      const a = ratedSpeeds.map(({ log }) => log);
      const b = speedsOf(others, rules).map(({ log }) => log);
      const [updatedFigures, otherFigures] = [speedFigures(a), speedFigures(b)];
      const limit = Math.log((otherFigures.value ?? 1) * MAX_SPEED_RATIO);
      const badKeys = ratedSpeeds.flatMap(({ key, log }) => (log <= limit ? [key] : []));
      const p = lowerMean(a, b, MIN_LOG_SPEED_DEVIATION);
      return { updated: updatedFigures, others: otherFigures, p, volunteerBadCount: 0, badKeys };
    }
    default:
      return measure satisfies never;
  }
}

function verdictOf(
  measure: RolloutMeasure,
  { updated, others, p }: Figures,
  { volunteerBadCount, badKeys }: BadMachines,
  { minBad, majorityP, stopP, concernP, hasOthers, noAccount }: Rules,
): RolloutComparison['verdict'] {
  // Up to two owners could make their own machines look bad, so worse machines of more owners or of proven owners are required.
  const provenBad = badKeys.filter((key) => key.startsWith(MACHINE_KEY)).length;
  const isIndependent = badKeys.filter((key) => key !== noAccount).length >= MIN_OWNERS || provenBad >= minBad;
  if (measure === 'slower' || measure === 'failed_requests') {
    const enough = ({ machines, count }: Figures['updated']) =>
      measure === 'slower' ? machines >= MIN_SPEED_MACHINES : machines >= MIN_RATE_MACHINES && count >= MIN_RATE_REQUESTS;
    if (!enough(updated) || !enough(others) || updated.value === null || others.value === null) return 'not_enough_data';
    const isWorse =
      measure === 'slower' ? updated.value <= others.value * MAX_SPEED_RATIO : updated.value - others.value >= MIN_FAILURE_DIFFERENCE;
    if (!isWorse) return 'good';
    return p < stopP && isIndependent ? 'worse' : p < concernP ? 'concern' : 'good';
  }
  if (updated.value === null) return 'not_enough_data';
  const othersShare = others.value ?? 0;
  const difference = updated.value - othersShare;
  if (difference < MIN_SHARE_DIFFERENCE) return 'good';
  // An owner who chose the version could also make the machine look bad. At least one other bad machine is required.
  const isEnough = isIndependent && updated.bad >= minBad && (!hasOthers || volunteerBadCount < updated.bad);
  if (p < stopP) return isEnough ? 'worse' : 'concern';
  const isMajority = isEnough && updated.value >= MAJORITY_SHARE && othersShare <= updated.value / 2;
  if (isMajority && (p < majorityP || others.count < updated.count)) return 'worse';
  return p < concernP || (updated.bad >= minBad && others.count < updated.count) ? 'concern' : 'good';
}

function proportionOf(
  measure: 'missing' | 'trust_lost' | 'restricted',
  machines: readonly ComparedMachine[],
  { now, keyOf }: Rules,
): Proportion & BadMachines {
  /** By key: whether all its bad machines are volunteers. */
  const bad = new Map<string, boolean>();
  let good = 0;
  for (const machine of machines) {
    const isBad = isBadMachine(measure, machine, now);
    if (isBad === null) continue;
    const key = keyOf(machine);
    if (isBad) bad.set(key, machine.isVolunteer && bad.get(key) !== false);
    else good++;
  }
  const volunteerBadCount = [...bad.values()].filter(Boolean).length;
  return { bad: bad.size, count: good + bad.size, volunteerBadCount, badKeys: [...bad.keys()] };
}

/** Null: the machine is not counted. Before its update, a machine counts only if it is missing or its trial failed. */
function isBadMachine(measure: 'missing' | 'trust_lost' | 'restricted', machine: ComparedMachine, now: number): boolean | null {
  const isGone = isMissing(machine, now);
  if (measure === 'missing') {
    if (machine.part === 'control') return isGone;
    return machine.onVersionAt !== null || machine.hasFailed || isGone ? machine.hasFailed || isGone : null;
  }
  if (!isConnected(machine, now) || (machine.part === 'updated' && machine.onVersionAt === null)) return null;
  if (measure === 'restricted') return machine.isRestricted;
  return machine.trustBefore === null || machine.trust === null ? null : machine.trust < machine.trustBefore;
}

interface Keyed {
  readonly key: string;
}

function requestsOf(machines: readonly ComparedMachine[], { keyOf }: Rules): (Cluster & Keyed)[] {
  const rated = machines.filter(({ part, onVersionAt, attempts }) => attempts > 0 && (part === 'control' || onVersionAt !== null));
  return grouped(rated, keyOf).map(([key, group]) => ({
    key,
    bad: group.reduce((sum, { failures, attempts }) => sum + Math.min(failures, attempts), 0),
    count: group.reduce((sum, { attempts }) => sum + attempts, 0),
  }));
}

/** Mean logarithm per key, because speed ratios multiply. */
function speedsOf(machines: readonly ComparedMachine[], { keyOf }: Rules): (Keyed & { readonly log: number })[] {
  const logs = machines.flatMap((machine) => {
    const { part, onVersionAt, speedRatio } = machine;
    return speedRatio !== null && speedRatio > 0 && (part === 'control' || onVersionAt !== null)
      ? [{ machine, log: Math.log(speedRatio) }]
      : [];
  });
  return grouped(logs, ({ machine }) => keyOf(machine)).map(([key, group]) => ({
    key,
    log: group.reduce((sum, { log }) => sum + log, 0) / group.length,
  }));
}

function grouped<Item>(items: readonly Item[], keyOf: (item: Item) => string): [key: string, group: Item[]][] {
  const groups = new Map<string, Item[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return [...groups];
}

function shareFigures({ bad, count }: Proportion): Figures['updated'] {
  return { bad, count, machines: count, value: count === 0 ? null : bad / count };
}

function requestFigures(clusters: readonly Cluster[]): Figures['updated'] {
  const bad = Math.round(clusters.reduce((sum, one) => sum + one.bad, 0));
  const count = Math.round(clusters.reduce((sum, one) => sum + one.count, 0));
  return { bad, count, machines: clusters.length, value: count === 0 ? null : bad / count };
}

function speedFigures(logs: readonly number[]): Figures['updated'] {
  const value = logs.length === 0 ? null : Math.exp(logs.reduce((sum, one) => sum + one, 0) / logs.length);
  return { bad: 0, count: logs.length, machines: logs.length, value };
}
