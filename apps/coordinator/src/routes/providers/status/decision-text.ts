/** `decisionText` explains a placement decision to the owner of the provider in one sentence. */

import type { UnavailableReason } from '@inference/scheduler';
import type { LoggedDecision } from '../../../providers/placement/placement-log.js';
import type { NotChosenReason, NotEligibleReason, PlacementVerdict } from '../../../providers/placement/placement-verdict.js';

const CHOSEN: Readonly<Record<(PlacementVerdict & { outcome: 'chosen' })['reason'], string>> = {
  cheapest: 'Chosen: the fastest for this request.',
  near_tie: 'Chosen: drawn among providers of about equal speed.',
  measuring: 'Chosen: to measure its speed.',
  overdue: 'Chosen: no request for a long time.',
  warm: 'Chosen: the beginning of this conversation was in its prefix cache.',
  probing: 'Chosen: to test its health after earlier failures.',
  named: 'Chosen: the client asked for this machine.',
};

const NOT_CHOSEN: Readonly<Record<Exclude<NotChosenReason, 'slower'>, string>> = {
  near_tie: 'Not chosen: as fast as the best, but another was drawn.',
  measuring_other: 'Not chosen: as fast as the best, but another had to be measured.',
  overdue_other: 'Not chosen: as fast as the best, but another had no request for a long time.',
  warm_other: 'Not chosen: as fast as the best, but another had the beginning of this conversation in its prefix cache.',
  probing_other: 'Not chosen: as fast as the best, but another had to be tested after failures.',
};

const NOT_ELIGIBLE: Readonly<Record<NotEligibleReason, string>> = {
  failed_before: 'Not eligible: this request had failed there before.',
  below_trust_floor: 'Not eligible: the request required trust level hardware.',
};

const UNAVAILABLE: Readonly<Record<Exclude<UnavailableReason, 'untrusted' | 'held_off'>, string>> = {
  quarantined: 'Unavailable: in quarantine.',
  cooling_down: 'Unavailable: in backoff after failed requests.',
  on_probation: 'Unavailable: after failed requests, one request at a time tests its health.',
  draining: 'Unavailable: draining.',
  away: 'Unavailable: it accepted no requests, because of its schedule, its owner, or its power and load.',
  key_expired: 'Unavailable: its sealing key had expired.',
  below_min_trust_level: 'Unavailable: its trust level was below the minimum of this network.',
  low_battery: 'Unavailable: its battery was low.',
  too_hot: 'Unavailable: it was too hot.',
  no_memory: 'Unavailable: out of memory.',
  no_free_slot: 'Unavailable: no free slot.',
};

export function decisionText({ verdict, lastAt, challengedAt }: LoggedDecision): string {
  switch (verdict.outcome) {
    case 'chosen':
      return CHOSEN[verdict.reason];
    case 'not_chosen':
      return verdict.reason === 'slower' ? `Not chosen: slower by ${formatDuration(verdict.ms ?? 0)}.` : NOT_CHOSEN[verdict.reason];
    case 'not_eligible':
      return NOT_ELIGIBLE[verdict.reason];
    case 'gate': {
      // Age at the newest decision of this kind.
      const challengeAgeMs = challengedAt === null ? null : lastAt - challengedAt;
      return unavailableText(verdict.reason, verdict.ms, challengeAgeMs);
    }
    default:
      return verdict satisfies never;
  }
}

function unavailableText(reason: UnavailableReason, ms: number | null, challengeAgeMs: number | null): string {
  if (reason === 'held_off') return `Unavailable: it had reported that it is full, with ${formatDuration(ms ?? 0)} of backoff left.`;
  if (reason !== 'untrusted') return UNAVAILABLE[reason];
  if (challengeAgeMs === null) return 'Unavailable: its attestation was not verified or had expired.';
  return `Unavailable: its attestation was not verified or had expired; its newest challenge was ${formatDuration(challengeAgeMs)} old.`;
}

/** Formats a duration: `0.4 s`, `2.1 s`, `7 min`, `3 h`. The limits prevent `60.0 s` and `60 min`, which rounding would give. */
export function formatDuration(ms: number): string {
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < 3_570_000) return `${Math.round(ms / 60_000)} min`;
  return `${Math.round(ms / 3_600_000)} h`;
}
