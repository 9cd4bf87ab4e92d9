/** `availability` decides whether this machine accepts jobs, by the owner's schedule, pause and policy, and the machine's condition. */
import type { AwayReason } from '@inference/protocol';
import type { HostCondition } from '../condition/condition.js';
import type { Cooldowns, StressFlags } from './cooldowns.js';
import { momentText } from './moment-text.js';
import type { AvailabilityPolicy } from './policy.js';
import { isOpen, nextChange } from './windows.js';

export interface Pause {
  /** End in milliseconds since 1970; null if the owner must resume. */
  readonly until: number | null;
  /** Present if the owner paused from the console. */
  readonly console?: {
    readonly at: number;
    /** Name of the account; null if unknown. */
    readonly account: string | null;
  };
}

export interface AvailabilityFacts {
  readonly timeZone: string;
  /** Null if unknown, or not needed by the policy. */
  readonly ownerIdleMs: number | null;
  readonly condition: HostCondition;
  /** Remaining cooldown of each kind of stress, in milliseconds. */
  readonly remainingCooldowns: Cooldowns;
  readonly pause: Pause | null;
}

export interface Reason {
  readonly code: AwayReason;
  readonly text: string;
  /** Milliseconds since 1970; null if unknown or not certain. */
  readonly until: number | null;
}

export interface Availability {
  /** Jobs are accepted only in `serve`. Running jobs are finished in `leave`, and returned to the coordinator in `hand_back`. */
  readonly state: 'serve' | 'leave' | 'hand_back';
  /** Empty in `serve`. The first reason matters most to the owner. */
  readonly reasons: readonly Reason[];
  /** Next change that is known in advance, in milliseconds since 1970, or null. */
  readonly nextChangeAt: number | null;
}

/** Reasons that cannot wait for a long answer to finish. */
const URGENT: ReadonlySet<AwayReason> = new Set(['too_hot', 'no_memory']);
/** Maximum reasons in sequence to look ahead, such as a pause that ends outside the schedule. */
const MAX_STEPS = 8;

/** `now` in milliseconds since 1970. Never throws for a validated policy. */
export function availability(policy: AvailabilityPolicy, facts: AvailabilityFacts, now: number): Availability {
  const found = reasonsAt(policy, facts, now, now);
  const reasons = found.map(({ reason }) => reason);
  const urgent = found.some(({ reason, isCurrent }) => isCurrent && URGENT.has(reason.code));
  return {
    state: reasons.length === 0 ? 'serve' : urgent || policy.whenLeaving === 'hand_back' ? 'hand_back' : 'leave',
    reasons,
    nextChangeAt: reasons.length === 0 ? nextChange(policy.windows, zoneOf(policy, facts), now) : findReopening(policy, facts, now, found),
  };
}

/** Kinds of stress that stop serving under the policy. */
export function stressOf({ onBattery, whenHot }: AvailabilityPolicy, { thermal, memoryPressure, power }: HostCondition): StressFlags {
  return {
    heat: thermal === 'critical' || (whenHot === 'stop' && thermal === 'serious'),
    memory: memoryPressure === 'critical',
    power: power === 'low_battery' || (onBattery === 'stop' && power === 'battery'),
  };
}

interface FoundReason {
  readonly reason: Reason;
  /** False if only the cooldown of the reason remains. */
  readonly isCurrent: boolean;
  /** End if nothing but time changes, also where `reason.until` is null. Null if unknown. */
  readonly endsAt: number | null;
}

/** Reasons at the time `at`, if nothing but time changes after `now`, the time of the facts. */
function reasonsAt(policy: AvailabilityPolicy, facts: AvailabilityFacts, now: number, at: number): FoundReason[] {
  const found: FoundReason[] = [];
  const add = (code: AwayReason, until: number | null, { isCurrent = true, endsAt = until } = {}): void => {
    const text = reasonText(code, { policy, facts, until: isCurrent ? until : endsAt, now: at });
    found.push({ reason: { code, text, until }, isCurrent, endsAt });
  };
  const { pause, condition, remainingCooldowns, ownerIdleMs } = facts;
  if (pause !== null && (pause.until === null || at < pause.until)) add('paused', pause.until);
  const zone = zoneOf(policy, facts);
  if (!isOpen(policy.windows, zone, at)) add('outside_schedule', nextChange(policy.windows, zone, at));
  const stress = stressOf(policy, condition);
  const addStress = (name: keyof StressFlags, code: AwayReason): void => {
    const until = now + remainingCooldowns[name];
    if (stress[name]) add(code, null);
    // `until` is null, because the stress may return before.
    else if (until > at) add(code, null, { isCurrent: false, endsAt: until });
  };
  addStress('power', condition.power === 'low_battery' ? 'low_battery' : 'on_battery');
  addStress('heat', 'too_hot');
  addStress('memory', 'no_memory');
  const { onlyWhenIdleMinutes } = policy;
  if (onlyWhenIdleMinutes !== null) {
    if (ownerIdleMs === null) add('idle_unknown', null);
    else {
      const endsAt = now - ownerIdleMs + onlyWhenIdleMinutes * 60_000;
      // `until` is null, because the owner may continue to use the machine.
      if (endsAt > at) add('owner_active', null, { endsAt });
    }
  }
  return found;
}

/** Time at which no reason remains if nothing but time changes. Null if unknown. */
function findReopening(policy: AvailabilityPolicy, facts: AvailabilityFacts, now: number, reasons: readonly FoundReason[]): number | null {
  let at = now;
  let found = reasons;
  for (let step = 0; step < MAX_STEPS; step++) {
    const ends = found.map(({ endsAt }) => endsAt);
    if (ends.includes(null)) return null;
    at = Math.max(at + 1, ...(ends as number[]));
    found = reasonsAt(policy, facts, now, at);
    if (found.length === 0) return at;
  }
  return null;
}

function zoneOf({ timeZone }: AvailabilityPolicy, facts: Pick<AvailabilityFacts, 'timeZone'>): string {
  return timeZone ?? facts.timeZone;
}

interface Circumstances {
  readonly policy: AvailabilityPolicy;
  readonly facts: AvailabilityFacts;
  /** End to state. For stress, that of the cooldown. */
  readonly until: number | null;
  readonly now: number;
}

/** `ownerStep` gives the remedies. */
function reasonText(code: AwayReason, { policy, facts, until, now }: Circumstances): string {
  const zone = policy.timeZone ?? facts.timeZone;
  const end = until === null ? null : momentText(until, zone, now);
  const recovery = end === null ? '' : ` It has recovered; requests are accepted again at ${end} unless this recurs.`;
  switch (code) {
    case 'paused': {
      const { console: from } = facts.pause ?? {};
      const where = from === undefined ? 'Paused' : `Paused from the console at ${momentText(from.at, zone, now)},`;
      return `${where} until ${end ?? 'you resume'}.`;
    }
    case 'outside_schedule':
      return end === null ? 'Outside your schedule, which has no times this week.' : `Outside your schedule until ${end}.`;
    case 'owner_active':
      return `This machine is in use. Requests are accepted after ${minutes(policy.onlyWhenIdleMinutes ?? 0)} of inactivity.`;
    case 'idle_unknown':
      return 'Set to serve only while this machine is idle, which cannot be measured here.';
    case 'on_battery':
      return recovery === '' ? 'This machine runs on battery.' : `This machine ran on battery.${recovery}`;
    case 'low_battery':
      return recovery === '' ? 'The battery is low.' : `The battery was low.${recovery}`;
    case 'too_hot':
      return recovery === '' ? 'This machine is too hot.' : `This machine was too hot.${recovery}`;
    case 'no_memory':
      return recovery === '' ? 'This machine is out of memory.' : `This machine was out of memory.${recovery}`;
    default:
      return code satisfies never;
  }
}

function minutes(count: number): string {
  return count === 1 ? 'a minute' : `${count} minutes`;
}
