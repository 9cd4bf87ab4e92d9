/** Sentence for the owner per reason for taking no jobs. */
import type { AwayReason } from '@inference/protocol';
import type { AvailabilityFacts } from './availability.js';
import { momentText } from './moment-text.js';
import type { AvailabilityPolicy } from './policy.js';

interface Circumstances {
  readonly policy: AvailabilityPolicy;
  readonly facts: AvailabilityFacts;
  readonly until: number | null;
  readonly now: number;
}

export function reasonText(code: AwayReason, { policy, facts, until, now }: Circumstances): string {
  const zone = policy.timeZone ?? facts.timeZone;
  const end = until === null ? null : momentText(until, zone, now);
  const held = end === null ? '' : ` It is better now, and it serves again at ${end} if it stays so.`;
  switch (code) {
    case 'paused':
      return end === null ? 'It is paused until you resume it.' : `It is paused until ${end}.`;
    case 'outside_schedule':
      return end === null ? 'The schedule has no time for it this week.' : `The schedule begins again at ${end}.`;
    case 'owner_active':
      return `This machine is in use. It serves when nobody has used it for ${minutes(policy.onlyWhenIdleMinutes ?? 0)}.`;
    case 'idle_unknown':
      return 'It serves only when nobody uses this machine, and that cannot be told here. Take only_when_idle_minutes out of the configuration.';
    case 'on_battery':
      return held === '' ? 'This machine runs on battery. Connect it to power.' : `This machine ran on battery.${held}`;
    case 'low_battery':
      return held === '' ? 'The battery is low. Connect this machine to power.' : `The battery was low.${held}`;
    case 'too_hot':
      return held === '' ? 'This machine is too hot. Give it air, or run less beside it.' : `This machine was too hot.${held}`;
    case 'no_memory':
      return held === ''
        ? 'This machine is out of memory. Close programs, or serve a smaller model.'
        : `This machine was out of memory.${held}`;
    default:
      return code satisfies never;
  }
}

function minutes(count: number): string {
  return count === 1 ? 'a minute' : `${count} minutes`;
}
