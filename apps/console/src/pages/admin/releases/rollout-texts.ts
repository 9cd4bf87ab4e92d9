/** Texts of the releases page about rollouts: states, operator actions, and comparisons of updated machines with others. */
import type { AdminRollout, RolloutAct, RolloutComparison, RolloutMeasure, RolloutState } from '@inference/formats';
import { formatCount, formatShare, pluralize } from '../../../ui/display/figures.js';
import type { Tone } from '../../../ui/feedback/note.js';

export const STATES: Readonly<Record<RolloutState, { readonly label: string; readonly tone: Tone }>> = {
  active: { label: 'Rolling out', tone: 'accent' },
  paused: { label: 'Paused', tone: 'warn' },
  halted: { label: 'Halted', tone: 'bad' },
  complete: { label: 'Offered to everyone', tone: 'good' },
};

export const MEASURES: Readonly<Record<RolloutMeasure, string>> = {
  missing: 'Did not come back',
  trust_lost: 'Lost trust level',
  restricted: 'Restricted or quarantined',
  failed_requests: 'Failed requests',
  slower: 'Relative speed',
};

export const COMPARISON_RESULTS: Readonly<Record<RolloutComparison['verdict'], { readonly label: string; readonly tone: Tone }>> = {
  good: { label: 'No difference', tone: 'good' },
  concern: { label: 'Possibly worse', tone: 'warn' },
  worse: { label: 'Worse', tone: 'bad' },
  not_enough_data: { label: 'Not enough data', tone: 'neutral' },
};

/** Figure of one side of a comparison (updated or other machines): `3 of 20 (15%)`, or for speed `98% (20 machines)`. */
export function sideText({ measure }: RolloutComparison, { bad, count, machines, value }: RolloutComparison['updated']): string {
  if (value === null) return '—';
  if (measure === 'slower') return `${formatShare(value)} (${pluralize(machines, 'machine')})`;
  return `${formatCount(bad)} of ${formatCount(count)} (${formatShare(value)})`;
}

export function cohortText({ cohort }: RolloutComparison): string {
  if (cohort === null) return 'All machines';
  return cohort.kind === 'chip' ? `Chip ${cohort.name}` : cohort.name;
}

interface ActText {
  readonly button: string;
  readonly title: (version: string) => string;
  readonly text: string;
  readonly done: string;
  readonly error: string;
}

export const ACTS: Readonly<Record<RolloutAct, ActText>> = {
  pause: {
    button: 'Pause',
    title: (version) => `Pause the rollout of ${version}?`,
    text: 'No further machine is offered the version. Machines on the version keep the version.',
    done: 'Rollout paused',
    error: 'The rollout was not paused.',
  },
  resume: {
    button: 'Resume',
    title: (version) => `Resume the rollout of ${version}?`,
    text: 'Machines of the current stage are offered the version again. After a halt, only later machines count for the comparison.',
    done: 'Rollout resumed',
    error: 'The rollout was not resumed.',
  },
  halt: {
    button: 'Halt',
    title: (version) => `Halt the rollout of ${version}?`,
    text: 'No machine is offered the version. Machines on the version keep the version until a newer version is published.',
    done: 'Rollout halted',
    error: 'The rollout was not halted.',
  },
  advance: {
    button: 'Next stage',
    title: (version) => `Start the next stage of ${version} now?`,
    text: 'More machines are offered the version at once. The comparison continues, and can still halt the rollout.',
    done: 'Next stage started',
    error: 'The next stage was not started.',
  },
  complete: {
    button: 'Offer to everyone',
    title: (version) => `Offer ${version} to everyone?`,
    text: 'All machines may update at once, without stages, capacity limits or automatic halt.',
    done: 'Offered to everyone',
    error: 'The rollout was not completed.',
  },
  expedite: {
    button: 'Make urgent',
    title: (version) => `Make the rollout of ${version} urgent?`,
    text: 'For security fixes: stages last an eighth, and twice the capacity may update at once. A bad version is still halted.',
    done: 'Rollout made urgent',
    error: 'The rollout was not made urgent.',
  },
};

/** Actions that the state permits, the most common first. */
export function actsOf({ state, stage, stages, urgent }: AdminRollout): readonly RolloutAct[] {
  const expedite = urgent ? [] : (['expedite'] as const);
  switch (state) {
    case 'active':
      return ['pause', ...(stage < stages ? (['advance'] as const) : []), ...expedite, 'complete', 'halt'];
    case 'paused':
      return ['resume', ...expedite, 'halt'];
    case 'halted':
      return ['resume'];
    case 'complete':
      return ['halt'];
    default:
      return state satisfies never;
  }
}
