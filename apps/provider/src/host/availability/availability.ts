/**
 * Whether this machine takes jobs now, and why not: a pure function of what its owner asks for, how it is, and the time. Every reason
 * comes with a code for programs and a sentence for the owner.
 */
import type { AwayReason } from '@inference/protocol';
import type { HostCondition } from '../condition/condition.js';
import type { Cooldowns, StressFlags } from './cooldowns.js';
import type { AvailabilityPolicy } from './policy.js';
import { reasonText } from './reason-text.js';
import { isOpen, nextChange } from './windows.js';

export interface Pause {
  /** Milliseconds since 1970; null: until the owner ends it. */
  readonly until: number | null;
}

export interface AvailabilityFacts {
  /** The machine's own time zone. */
  readonly timeZone: string;
  /** How long nobody has used it, in milliseconds; null: not known. Looked at only where the policy asks for it. */
  readonly ownerIdleMs: number | null;
  readonly condition: HostCondition;
  /** StressFlags that are over, and for how long they still count, in milliseconds. */
  readonly remainingCooldowns: Cooldowns;
  readonly pause: Pause | null;
}

export interface Reason {
  readonly code: AwayReason;
  readonly text: string;
  /** When it ends, as far as that is known, in milliseconds since 1970. */
  readonly until: number | null;
}

export interface Availability {
  /** `leave`: no more jobs, running ones are finished. `refuse`: no more jobs, and running ones are handed back. */
  readonly state: 'serve' | 'leave' | 'refuse';
  /** None while it serves. The first is the one that matters most to the owner. */
  readonly reasons: readonly Reason[];
  /** When this will be another one if only time passes; null: not known. In milliseconds since 1970. */
  readonly nextChangeAt: number | null;
}

/** Reasons that cannot wait for the end of a long answer. */
const URGENT: ReadonlySet<AwayReason> = new Set(['too_hot', 'no_memory']);
/** Looks ahead at most: a pause that ends while the schedule is closed, which opens while it is hot, and so on. */
const MAX_STEPS = 8;

/** `now` in milliseconds since 1970. Never throws for a policy that was read from the configuration. */
export function availability(policy: AvailabilityPolicy, facts: AvailabilityFacts, now: number): Availability {
  const found = reasonsAt(policy, facts, now, now);
  const reasons = found.map(({ reason }) => reason);
  const urgent = found.some(({ reason, lasting }) => lasting && URGENT.has(reason.code));
  return {
    state: reasons.length === 0 ? 'serve' : urgent || policy.whenLeaving === 'hand_back' ? 'refuse' : 'leave',
    reasons,
    nextChangeAt: reasons.length === 0 ? nextChange(policy.windows, zoneOf(policy, facts), now) : opensAt(policy, facts, now, found),
  };
}

/** Which troubles there are by this policy. */
export function stressOf({ onBattery, whenHot }: AvailabilityPolicy, { thermal, memoryPressure, power }: HostCondition): StressFlags {
  return {
    heat: thermal === 'critical' || (whenHot === 'stop' && thermal === 'serious'),
    memory: memoryPressure === 'critical',
    power: power === 'low_battery' || (onBattery === 'stop' && power === 'battery'),
  };
}

interface Found {
  readonly reason: Reason;
  /** It is so now, and not only held on to. */
  readonly lasting: boolean;
  /** When it ends if only time passes and nobody comes; null: not known. */
  readonly endsAt: number | null;
}

/** As it will be at `at`, as far as time alone changes it. `now`: when the facts were read. */
function reasonsAt(policy: AvailabilityPolicy, facts: AvailabilityFacts, now: number, at: number): Found[] {
  const found: Found[] = [];
  const add = (code: AwayReason, until: number | null, { lasting = true, endsAt = until } = {}): void => {
    const text = reasonText(code, { policy, facts, until: lasting ? until : endsAt, now: at });
    found.push({ reason: { code, text, until }, lasting, endsAt });
  };
  const { pause, condition, remainingCooldowns, ownerIdleMs } = facts;
  if (pause !== null && (pause.until === null || at < pause.until)) add('paused', pause.until);
  const zone = zoneOf(policy, facts);
  if (!isOpen(policy.windows, zone, at)) add('outside_schedule', nextChange(policy.windows, zone, at));
  const troubles = stressOf(policy, condition);
  const addTrouble = (name: keyof StressFlags, code: AwayReason): void => {
    const until = now + remainingCooldowns[name];
    if (troubles[name]) add(code, null);
    // It may come back before, so that this is no promise.
    else if (until > at) add(code, null, { lasting: false, endsAt: until });
  };
  addTrouble('power', condition.power === 'low_battery' ? 'low_battery' : 'on_battery');
  addTrouble('heat', 'too_hot');
  addTrouble('memory', 'no_memory');
  const { onlyWhenIdleMinutes } = policy;
  if (onlyWhenIdleMinutes !== null) {
    if (ownerIdleMs === null) add('idle_unknown', null);
    else {
      const endsAt = now - ownerIdleMs + onlyWhenIdleMinutes * 60_000;
      // Whoever works will go on for as long as they like: its end is no promise.
      if (endsAt > at) add('owner_active', null, { endsAt });
    }
  }
  return found;
}

/** When none of the reasons is left, if only time passes. */
function opensAt(policy: AvailabilityPolicy, facts: AvailabilityFacts, now: number, reasons: readonly Found[]): number | null {
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

export function zoneOf({ timeZone }: AvailabilityPolicy, facts: Pick<AvailabilityFacts, 'timeZone'>): string {
  return timeZone ?? facts.timeZone;
}
