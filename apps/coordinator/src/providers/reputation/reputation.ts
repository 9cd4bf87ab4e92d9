/**
 * Rules of provider reputation: pure functions that return a new reputation.
 *
 * Failures lead to cooldowns: pauses of doubling length. Many cooldowns, or an answer that does not verify, lead to a quarantine, which
 * lasts longer. After both comes a probation, in which the next verified answer ends the restriction and the next fault renews it. All
 * effects expire.
 */
import type { RESTRICTION_STATES, RestrictionReason } from '@inference/protocol';

export type Fault = 'failed' | 'timed_out' | 'lost' | 'misbehaved' | 'unverified';

export interface Restriction {
  readonly kind: 'cooldown' | 'quarantine';
  readonly reason: RestrictionReason;
  /** A more exact code, for operators. */
  readonly detail: string;
  /** Milliseconds since 1970. Probation begins at `until`. */
  readonly since: number;
  readonly until: number;
}

/** Times in milliseconds since 1970. */
export interface Reputation {
  /** Decaying weight of the failures, as of `at`. */
  readonly weight: number;
  /** Number of jobs since the last verified answer in which another attempt was faster, as of `at`. */
  readonly late: number;
  /** Time of the newest change. */
  readonly at: number;
  readonly restriction: Restriction | null;
  /** Number of past cooldowns and quarantines, less forgiven ones. Each doubles the duration of the next. */
  readonly cooldowns: number;
  readonly quarantines: number;
  /** Time from which forgiveness counts: the end of the newest cooldown or quarantine. */
  readonly cooldownsAt: number;
  readonly quarantinesAt: number;
}

export type ReputationState = 'well' | (typeof RESTRICTION_STATES)[number];

export const CLEAN_REPUTATION: Reputation = {
  weight: 0,
  late: 0,
  at: 0,
  restriction: null,
  cooldowns: 0,
  quarantines: 0,
  cooldownsAt: 0,
  quarantinesAt: 0,
};

/** Half-life of a failure's weight. */
export const HALF_LIFE_MS = 2 * 60_000;
/** Factor by which each verified answer reduces the weight. */
const ANSWER_DECAY = 0.45;
/** Weight at which a cooldown starts: three failures within a minute. */
const COOLDOWN_WEIGHT = 2.5;
/** Minimum of {@link Reputation.late} that counts as one recent failure. */
const MIN_SLOW_ANSWERS = 3;
export const FIRST_COOLDOWN_MS = 10_000;
const MAX_COOLDOWN_MS = 10 * 60_000;
/** Number of unforgiven cooldowns after which the next one becomes a quarantine. */
export const MAX_COOLDOWNS = 6;
export const FIRST_QUARANTINE_MS = 30 * 60_000;
export const MAX_QUARANTINE_MS = 24 * 3_600_000;
/** Maximum count of past quarantines, so that all are forgiven within 20 days. Six already give the maximum duration. */
const MAX_QUARANTINES = 20;
/** Longest probation, for providers that get no job or never return. The restriction expires at its end. */
export const MAX_PROBATION_MS = 30 * 24 * 3_600_000;
/** Time after which one past cooldown or quarantine is forgiven. */
export const COOLDOWN_FORGIVENESS_MS = 15 * 60_000;
export const QUARANTINE_FORGIVENESS_MS = 24 * 3_600_000;

const REASONS: Readonly<Record<Fault, RestrictionReason>> = {
  failed: 'jobs_failed',
  timed_out: 'jobs_timed_out',
  lost: 'connections_lost',
  misbehaved: 'protocol_broken',
  unverified: 'answers_not_verified',
};

export function stateAt({ restriction }: Reputation, now: number): ReputationState {
  if (restriction === null) return 'well';
  if (now >= restriction.until) return 'on_probation';
  return restriction.kind === 'cooldown' ? 'cooling_down' : 'quarantined';
}

/** Returns the rounded weight of recent failures. Placement adds a penalty for each. */
export function recentFailures(reputation: Reputation, now: number): number {
  const { weight, late } = decayWeights(reputation, now);
  return Math.round(weight) + (late >= MIN_SLOW_ANSWERS ? 1 : 0);
}

/** Returns the reputation after a job that failed by the provider's fault. `random` in [0, 1). */
export function afterFault(before: Reputation, fault: Fault, detail: string, now: number, random: number): Reputation {
  const state = stateAt(before, now);
  if (fault === 'unverified') return state === 'quarantined' ? before : quarantined(before, REASONS[fault], detail, now, random);
  // Other faults change no current restriction: the job began before it, or no other provider was free.
  if (state === 'cooling_down' || state === 'quarantined') return before;
  const { weight, late } = decayWeights(before, now);
  const heavier = { ...before, weight: weight + (fault === 'misbehaved' ? COOLDOWN_WEIGHT : 1), late, at: now };
  if (before.restriction?.kind === 'quarantine') return quarantined(heavier, before.restriction.reason, detail, now, random);
  if (state !== 'on_probation' && heavier.weight < COOLDOWN_WEIGHT) return heavier;
  const cooldowns = countAfterForgiveness(before.cooldowns, before.cooldownsAt, COOLDOWN_FORGIVENESS_MS, now);
  if (cooldowns >= MAX_COOLDOWNS) return quarantined({ ...heavier, cooldowns: 0 }, 'keeps_failing', detail, now, random);
  const until = now + addJitter(Math.min(MAX_COOLDOWN_MS, FIRST_COOLDOWN_MS * 2 ** cooldowns), random);
  const restriction = { kind: 'cooldown', reason: REASONS[fault], detail, since: now, until } as const;
  return { ...heavier, restriction, cooldowns: cooldowns + 1, cooldownsAt: until };
}

/** Returns the reputation after a verified answer, which ends a cooldown or a probation, but not a quarantine. */
export function afterAnswer(before: Reputation, now: number): Reputation {
  const { weight } = decayWeights(before, now);
  const state = stateAt(before, now);
  if (state === 'quarantined') return before;
  // A single verified answer ends the restriction. The remaining weight leaves little room for further failures.
  if (state !== 'well') return { ...before, restriction: null, weight: ANSWER_DECAY, late: 0, at: now };
  return { ...before, weight: weight * ANSWER_DECAY, late: 0, at: now };
}

/** Returns the reputation after another attempt of the same job was faster. */
export function afterSlowAnswer(before: Reputation, now: number): Reputation {
  const { weight, late } = decayWeights(before, now);
  return { ...before, weight, late: late + 1, at: now };
}

export function quarantined(before: Reputation, reason: RestrictionReason, detail: string, now: number, random: number): Reputation {
  const quarantines = countAfterForgiveness(before.quarantines, before.quarantinesAt, QUARANTINE_FORGIVENESS_MS, now);
  const until = now + addJitter(Math.min(MAX_QUARANTINE_MS, FIRST_QUARANTINE_MS * 2 ** quarantines), random);
  const restriction = { kind: 'quarantine', reason, detail, since: now, until } as const;
  return { ...before, restriction, quarantines: Math.min(quarantines + 1, MAX_QUARANTINES), quarantinesAt: until };
}

/**
 * Limits the times and counts of a stored reputation: the clock of the process that wrote it may have been ahead, and version 0.1.0
 * counted quarantines without a maximum.
 */
export function clampedToLimits(stored: Reputation, now: number): Reputation {
  const restriction = stored.restriction;
  const latest = now + addJitter(MAX_QUARANTINE_MS, 1);
  return {
    ...stored,
    at: Math.min(stored.at, now),
    restriction:
      restriction === null ? null : { ...restriction, since: Math.min(restriction.since, now), until: Math.min(restriction.until, latest) },
    cooldowns: Math.min(stored.cooldowns, MAX_COOLDOWNS),
    quarantines: Math.min(stored.quarantines, MAX_QUARANTINES),
    cooldownsAt: Math.min(stored.cooldownsAt, latest),
    quarantinesAt: Math.min(stored.quarantinesAt, latest),
  };
}

/** Whether the reputation has no effect any more. */
export function isClean(reputation: Reputation, now: number): boolean {
  const { restriction, cooldowns, cooldownsAt, quarantines, quarantinesAt } = reputation;
  const { weight, late } = decayWeights(reputation, now);
  if ((restriction !== null && now < expiryOf(restriction)) || weight >= 0.1 || late > 0) return false;
  return (
    countAfterForgiveness(cooldowns, cooldownsAt, COOLDOWN_FORGIVENESS_MS, now) === 0 &&
    countAfterForgiveness(quarantines, quarantinesAt, QUARANTINE_FORGIVENESS_MS, now) === 0
  );
}

/** Returns when time alone may have changed the state or the penalty, in milliseconds since 1970; null: never. May be too early. */
export function nextChangeAt(reputation: Reputation, now: number): number | null {
  const { restriction } = reputation;
  if (restriction !== null && now < restriction.until) return restriction.until;
  const { weight, late } = decayWeights(reputation, now);
  // Time at which the rounded weight decreases by 1, plus a margin.
  if (weight >= 0.5) return now + HALF_LIFE_MS * Math.log2(weight / (Math.round(weight) - 0.5)) + 100;
  if (late > 0) return reputation.at + HALF_LIFE_MS;
  if (restriction !== null && now < expiryOf(restriction)) return expiryOf(restriction);
  return isClean(reputation, now) ? null : now + COOLDOWN_FORGIVENESS_MS;
}

/** Returns the end of the probation after a restriction, if no job decides earlier. */
function expiryOf({ until }: Restriction): number {
  return until + MAX_PROBATION_MS;
}

function decayWeights({ weight, late, at }: Reputation, now: number): { weight: number; late: number } {
  const halves = Math.max(0, now - at) / HALF_LIFE_MS;
  return { weight: weight * 0.5 ** halves, late: halves >= 1 ? 0 : late };
}

function countAfterForgiveness(count: number, since: number, everyMs: number, now: number): number {
  return Math.max(0, count - Math.floor(Math.max(0, now - since) / everyMs));
}

/** Varies a duration by up to a quarter, so that providers that failed together do not return together. */
function addJitter(ms: number, random: number): number {
  return Math.round(ms * (0.75 + random / 2));
}
