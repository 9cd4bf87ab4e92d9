/** `reasonText` tells the owner why this machine accepts no requests. `ownerStep` gives the remedies. */
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
  const held = end === null ? '' : ` It has recovered; requests are accepted again at ${end} unless this recurs.`;
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
      return held === '' ? 'This machine runs on battery.' : `This machine ran on battery.${held}`;
    case 'low_battery':
      return held === '' ? 'The battery is low.' : `The battery was low.${held}`;
    case 'too_hot':
      return held === '' ? 'This machine is too hot.' : `This machine was too hot.${held}`;
    case 'no_memory':
      return held === '' ? 'This machine is out of memory.' : `This machine was out of memory.${held}`;
    default:
      return code satisfies never;
  }
}

function minutes(count: number): string {
  return count === 1 ? 'a minute' : `${count} minutes`;
}
