/** Puts the codes of placement decisions into sentences for the owner of the machine. */

import type { UnavailableReason } from '@inference/scheduler';
import type { LoggedDecision } from '../../../providers/placement/decision-history.js';
import type { NotEligibleReason, PassedReason, PlacementVerdict } from '../../../providers/placement/placement-verdict.js';

const CHOSEN: Readonly<Record<(PlacementVerdict & { outcome: 'chosen' })['reason'], string>> = {
  cheapest: 'Chosen: the quickest for this request.',
  near_tie: 'Chosen: drawn among those that are about equally quick.',
  measuring: 'Chosen: to measure how quick it is.',
  overdue: 'Chosen: it had had no work for long.',
  warm: 'Chosen: it still knew the beginning of this conversation.',
  probing: 'Chosen: to see whether it is well again after earlier failures.',
  named: 'Chosen: the client asked for this machine.',
};

const PASSED: Readonly<Record<Exclude<PassedReason, 'slower'>, string>> = {
  near_tie: 'Not chosen: as quick as the best, and another was drawn.',
  measuring_other: 'Not chosen: as quick as the best, but a machine that was not measured yet got its turn.',
  overdue_other: 'Not chosen: as quick as the best, but a machine that had had no work for long got its turn.',
  warm_other: 'Not chosen: as quick as the best, but another still knew the beginning of this conversation.',
  probing_other: 'Not chosen: as quick as the best, but another had to show that it is well again.',
};

const UNFIT: Readonly<Record<NotEligibleReason, string>> = {
  failed_before: 'Not chosen: it had failed this very request before.',
  below_trust_floor: 'Not chosen: the request was for machines of trust level hardware.',
};

const GATES: Readonly<Record<Exclude<UnavailableReason, 'untrusted' | 'held_off'>, string>> = {
  quarantined: 'Not eligible: it was in quarantine.',
  cooling_down: 'Not eligible: jobs had failed there, and it was left alone for a while.',
  on_probation: 'Not eligible: jobs had failed there, and one at a time decides whether it is well.',
  draining: 'Not eligible: it had asked for no more jobs.',
  away: 'Not eligible: it took no jobs for a while, by its schedule or its owner or because of how the machine was.',
  key_expired: 'Not eligible: its sealing key had expired.',
  below_min_trust_level: 'Not eligible: its trust level was below the least of this network.',
  low_battery: 'Not eligible: its battery was low.',
  too_hot: 'Not eligible: it was too hot.',
  no_memory: 'Not eligible: it was out of memory.',
  no_free_slot: 'Not eligible: all of its slots were taken.',
};

/** Sentence for one logged placement decision. */
export function decisionText({ verdict, lastAt, challengedAt }: LoggedDecision): string {
  switch (verdict.outcome) {
    case 'chosen':
      return CHOSEN[verdict.reason];
    case 'not_chosen':
      return verdict.reason === 'slower' ? `Not chosen: slower by ${formatDuration(verdict.ms ?? 0)}.` : PASSED[verdict.reason];
    case 'not_eligible':
      return UNFIT[verdict.reason];
    case 'gate':
      return gateText(verdict.reason, verdict.ms, challengedAt === null ? null : lastAt - challengedAt);
    default:
      return verdict satisfies never;
  }
}

function gateText(gate: UnavailableReason, ms: number | null, challengeAgeMs: number | null): string {
  if (gate === 'held_off') return `Not eligible: it had said that it is full, and was left alone for ${formatDuration(ms ?? 0)} more.`;
  if (gate !== 'untrusted') return GATES[gate];
  if (challengeAgeMs === null) return 'Not eligible: a part of its trust did not hold.';
  return `Not eligible: a part of its trust did not hold; its newest challenge was ${formatDuration(challengeAgeMs)} old.`;
}

/** A length of time for people: `0.4 s`, `2.1 s`, `7 min`, `3 h`. */
export function formatDuration(ms: number): string {
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < 3_570_000) return `${Math.round(ms / 60_000)} min`;
  return `${Math.round(ms / 3_600_000)} h`;
}
