/**
 * What a provider's jobs came to lately, and what that keeps it from. Pure: each step takes a reputation, the clock and chance
 * and gives a new one. Failures lead to a pause that doubles, many pauses and lies to a quarantine; after each, one job decides;
 * and everything is forgotten with time, so that nobody is out for ever.
 */
import type { RESTRICTION_STATES, RestrictionReason } from '@inference/protocol';

/** What a provider did wrong in a job. */
export type Fault = 'failed' | 'timed_out' | 'lost' | 'misbehaved' | 'unverified';

export interface Restriction {
  readonly kind: 'cooldown' | 'quarantine';
  readonly reason: RestrictionReason;
  /** For the operator: the exact problem, a code. */
  readonly detail: string;
  /** Milliseconds. From `until` on, one job at a time decides. */
  readonly since: number;
  readonly until: number;
}

/** Times in milliseconds. */
export interface Reputation {
  /** Weight of the failures as it was at `at`. */
  readonly weight: number;
  /** Times in a row that a second machine was quicker, as it was at `at`. */
  readonly late: number;
  readonly at: number;
  readonly restriction: Restriction | null;
  /** Cooldowns and quarantines before, less those that time has forgiven: each doubles the next. */
  readonly cooldowns: number;
  readonly quarantines: number;
  /** Since when nothing was added to these. */
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

/** A failure's weight halves in this time. */
export const HALF_LIFE_MS = 2 * 60_000;
/** What each verified answer leaves of the weight. */
const ANSWER_DECAY = 0.45;
/** Weight at which a machine is left alone for a while: three failures within a minute. */
const COOLDOWN_WEIGHT = 2.5;
/** Lateness that is priced like one failure. */
const MAX_SLOW_ANSWERS = 3;
export const FIRST_COOLDOWN_MS = 10_000;
export const MAX_COOLDOWN_MS = 10 * 60_000;
/** Cooldowns in a row after which it is a quarantine. */
export const MAX_COOLDOWNS = 6;
export const FIRST_QUARANTINE_MS = 30 * 60_000;
export const MAX_QUARANTINE_MS = 24 * 3_600_000;
/** Without another one, one cooldown or quarantine is forgiven in this time. */
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

/** Failures that still count at `now`, as a whole number: what placement prices. */
export function recentFailures(reputation: Reputation, now: number): number {
  const { weight, late } = decayed(reputation, now);
  return Math.round(weight) + (late >= MAX_SLOW_ANSWERS ? 1 : 0);
}

/** A job went wrong, and it was the provider's fault. `random` in [0, 1). */
export function afterFault(before: Reputation, fault: Fault, detail: string, now: number, random: number): Reputation {
  const state = stateAt(before, now);
  if (fault === 'unverified') return state === 'quarantined' ? before : quarantined(before, REASONS[fault], detail, now, random);
  // What was already running when it was left alone, or ran for want of another machine, says nothing new.
  if (state === 'cooling_down' || state === 'quarantined') return before;
  const { weight, late } = decayed(before, now);
  const heavier = { ...before, weight: weight + (fault === 'misbehaved' ? COOLDOWN_WEIGHT : 1), late, at: now };
  if (before.restriction?.kind === 'quarantine') return quarantined(heavier, before.restriction.reason, detail, now, random);
  if (state !== 'on_probation' && heavier.weight < COOLDOWN_WEIGHT) return heavier;
  const cooldowns = countAfterForgiveness(before.cooldowns, before.cooldownsAt, COOLDOWN_FORGIVENESS_MS, now);
  if (cooldowns >= MAX_COOLDOWNS) return quarantined({ ...heavier, cooldowns: 0 }, 'keeps_failing', detail, now, random);
  const until = now + jittered(Math.min(MAX_COOLDOWN_MS, FIRST_COOLDOWN_MS * 2 ** cooldowns), random);
  const restriction = { kind: 'cooldown', reason: REASONS[fault], detail, since: now, until } as const;
  return { ...heavier, restriction, cooldowns: cooldowns + 1, cooldownsAt: until };
}

/** An answer verified. It ends a cooldown at once, and a quarantine when that was over but for the trial. */
export function afterAnswer(before: Reputation, now: number): Reputation {
  const { weight } = decayed(before, now);
  const state = stateAt(before, now);
  if (state === 'quarantined') return before;
  // One good answer ends the trial, and leaves little room for the next failures.
  if (state !== 'well') return { ...before, restriction: null, weight: ANSWER_DECAY, late: 0, at: now };
  return { ...before, weight: weight * ANSWER_DECAY, late: 0, at: now };
}

/** A second machine was quicker with the first content. */
export function afterSlowAnswer(before: Reputation, now: number): Reputation {
  const { weight, late } = decayed(before, now);
  return { ...before, weight, late: late + 1, at: now };
}

export function quarantined(before: Reputation, reason: RestrictionReason, detail: string, now: number, random: number): Reputation {
  const quarantines = countAfterForgiveness(before.quarantines, before.quarantinesAt, QUARANTINE_FORGIVENESS_MS, now);
  const until = now + jittered(Math.min(MAX_QUARANTINE_MS, FIRST_QUARANTINE_MS * 2 ** Math.min(quarantines, 20)), random);
  const restriction = { kind: 'quarantine', reason, detail, since: now, until } as const;
  return { ...before, restriction, quarantines: quarantines + 1, quarantinesAt: until };
}

/**
 * One that was kept elsewhere, by this clock: nothing of it lies ahead of `now`, and nobody is held back for longer than they can be,
 * whatever the clock said that it was written by.
 */
export function clampedToClock(kept: Reputation, now: number): Reputation {
  const restriction = kept.restriction;
  const latest = now + jittered(MAX_QUARANTINE_MS, 1);
  return {
    ...kept,
    at: Math.min(kept.at, now),
    restriction:
      restriction === null ? null : { ...restriction, since: Math.min(restriction.since, now), until: Math.min(restriction.until, latest) },
    cooldownsAt: Math.min(kept.cooldownsAt, latest),
    quarantinesAt: Math.min(kept.quarantinesAt, latest),
  };
}

/** Whether nothing of it counts any more. */
export function isClean(reputation: Reputation, now: number): boolean {
  const { restriction, cooldowns, cooldownsAt, quarantines, quarantinesAt } = reputation;
  const { weight, late } = decayed(reputation, now);
  if (restriction !== null || weight >= 0.1 || late > 0) return false;
  return (
    countAfterForgiveness(cooldowns, cooldownsAt, COOLDOWN_FORGIVENESS_MS, now) === 0 &&
    countAfterForgiveness(quarantines, quarantinesAt, QUARANTINE_FORGIVENESS_MS, now) === 0
  );
}

/** When placement should look again although nothing happens, in milliseconds; null: never. */
export function nextChangeAt(reputation: Reputation, now: number): number | null {
  const { restriction } = reputation;
  if (restriction !== null && now < restriction.until) return restriction.until;
  const { weight, late } = decayed(reputation, now);
  // When the rounded weight is one less, and a moment.
  if (weight >= 0.5) return now + HALF_LIFE_MS * Math.log2(weight / (Math.round(weight) - 0.5)) + 100;
  if (late > 0) return reputation.at + HALF_LIFE_MS;
  return restriction !== null || isClean(reputation, now) ? null : now + COOLDOWN_FORGIVENESS_MS;
}

function decayed({ weight, late, at }: Reputation, now: number): { weight: number; late: number } {
  const halves = Math.max(0, now - at) / HALF_LIFE_MS;
  return { weight: weight * 0.5 ** halves, late: halves >= 1 ? 0 : late };
}

function countAfterForgiveness(count: number, since: number, everyMs: number, now: number): number {
  return Math.max(0, count - Math.floor(Math.max(0, now - since) / everyMs));
}

/** A quarter more or less, so that machines that failed together are not tried together. */
function jittered(ms: number, random: number): number {
  return Math.round(ms * (0.75 + random / 2));
}
