/**
 * Builds and updates the database rows of machines that are compared during a rollout. Pure.
 *
 * A row is created when a machine is offered the version, sampled as a control, or first seen with the version.
 */
import { createHash } from 'node:crypto';
import { compareVersions } from '@inference/protocol';
import type { RolloutMachineRow, RolloutRow } from '../database/rollout-repository.js';
import { type ConnectedMachine, ownerHash } from './connected-machine.js';
import type { OutcomeCount, OutcomeCounts } from './job-outcomes.js';
import type { ComparedMachine, Rollout } from './rollout.js';

/** How long after an offer requests and speeds are counted. Later changes probably have other causes. */
const OBSERVED_MS = 24 * 3_600_000;
/** Weight of the newest value in the moving average of the speed ratio. */
const SPEED_WEIGHT = 0.2;
/** Maximum stored count of requests. */
const MAX_COUNT = 1_000_000;

export function newRow(
  version: string,
  part: RolloutMachineRow['part'],
  machine: ConnectedMachine,
  now: number,
  isVolunteer = false,
): RolloutMachineRow {
  return {
    version,
    provider_id: machine.provider_id,
    part,
    chip_family: machine.chip_family,
    models: JSON.stringify(machine.models),
    slots: machine.slots,
    since: now,
    seen_at: now,
    on_version_at: null,
    failed_at: null,
    blocked_at: null,
    restricted_at: null,
    trust_before: machine.trust,
    trust: machine.trust,
    attempts: 0,
    failures: 0,
    speed_model: machine.speed_model,
    speed_before: machine.speed,
    speed_ratio: null,
    owner: ownerKey(version, ownerHash(machine.account_id)),
    is_volunteer: isVolunteer ? 1 : 0,
  };
}

/** Key of an owner in rollout rows, from `ownerHash`. Differs per version, so that rows of different versions cannot be linked. */
export function ownerKey(version: string, owner: string): string {
  return createHash('sha256').update(`inference/rollout-owner/v1\0${version}\0${owner}`).digest('hex').slice(0, 32);
}

/** Row of a machine that runs the version without an offer. Its trust and speed before the update are unknown. */
function unofferedRow(version: string, machine: ConnectedMachine, now: number): RolloutMachineRow {
  return {
    ...newRow(version, 'updated', machine, now, true),
    on_version_at: now,
    trust_before: null,
    speed_model: null,
    speed_before: null,
  };
}

export interface Observation {
  readonly changed: readonly RolloutMachineRow[];
  /** Ids of connected machines whose rows only need a new `seen_at`. */
  readonly seen: readonly string[];
}

/** Updates the rows by the machines that are connected now. */
export function observeMachines(
  version: string,
  rows: readonly RolloutMachineRow[],
  machines: ReadonlyMap<string, ConnectedMachine>,
  outcomes: OutcomeCounts,
  now: number,
): Observation {
  const changed: RolloutMachineRow[] = [];
  const seen: string[] = [];
  const updated = new Set(rows.filter(({ part }) => part === 'updated').map(({ provider_id }) => provider_id));
  for (const row of rows) {
    const machine = machines.get(row.provider_id);
    if (machine === undefined || (row.part === 'control' && updated.has(row.provider_id))) continue;
    // If an earlier write failed, the counts start earlier, and contain requests of the old version or from before the row.
    const countableSince = row.part === 'control' ? row.since : row.on_version_at;
    const isCountable = countableSince !== null && countableSince <= outcomes.since;
    const next = observedRow(row, machine, isCountable ? outcomes.byProvider.get(row.provider_id) : undefined, now);
    if (isSame(row, next)) seen.push(row.provider_id);
    else changed.push(next);
  }
  for (const machine of machines.values()) {
    // Blocked machines are not compared, because anyone can connect them.
    if (machine.version === version && !machine.is_blocked && !updated.has(machine.provider_id))
      changed.push(unofferedRow(version, machine, now));
  }
  return { changed, seen };
}

function observedRow(row: RolloutMachineRow, machine: ConnectedMachine, outcome: OutcomeCount | undefined, now: number): RolloutMachineRow {
  const isOnVersion = machine.version !== null && compareVersions(machine.version, row.version) >= 0;
  // The first observation after the update still contains requests and speed of the old version.
  const isCounted = now - row.since <= OBSERVED_MS && (row.part === 'control' || (isOnVersion && row.on_version_at !== null));
  return {
    ...row,
    seen_at: now,
    on_version_at: isOnVersion ? (row.on_version_at ?? now) : null,
    failed_at: isOnVersion ? null : row.failed_at,
    blocked_at: machine.is_blocked ? (row.blocked_at ?? now) : null,
    restricted_at: machine.is_restricted ? (row.restricted_at ?? now) : null,
    trust: machine.trust,
    attempts: Math.min(MAX_COUNT, row.attempts + (isCounted ? (outcome?.attempts ?? 0) : 0)),
    failures: Math.min(MAX_COUNT, row.failures + (isCounted ? (outcome?.failures ?? 0) : 0)),
    speed_ratio: isCounted ? speedRatio(row, machine) : row.speed_ratio,
  };
}

function speedRatio(
  { speed_model, speed_before, speed_ratio }: RolloutMachineRow,
  { speed_model: model, speed }: ConnectedMachine,
): number | null {
  if (speed_before === null || speed_before <= 0 || speed === null || speed <= 0 || model !== speed_model) return speed_ratio;
  const ratio = speed / speed_before;
  return speed_ratio === null ? ratio : speed_ratio + SPEED_WEIGHT * (ratio - speed_ratio);
}

function isSame(a: RolloutMachineRow, b: RolloutMachineRow): boolean {
  return (Object.keys(a) as (keyof RolloutMachineRow)[]).every((key) => key === 'seen_at' || a[key] === b[key]);
}

/** Machines to compare, of rows since `evidenceSince`. An updated machine is not also a control. */
export function comparedMachines(rows: readonly RolloutMachineRow[], evidenceSince: number): ComparedMachine[] {
  const updated = new Set(rows.filter(({ part }) => part === 'updated').map(({ provider_id }) => provider_id));
  return rows
    .filter(({ part, provider_id, since }) => since >= evidenceSince && (part === 'updated' || !updated.has(provider_id)))
    .map(comparedMachine);
}

export function comparedMachine(row: RolloutMachineRow): ComparedMachine {
  return {
    providerId: row.provider_id,
    chipFamily: row.chip_family,
    models: JSON.parse(row.models) as string[],
    slots: row.slots,
    part: row.part,
    at: row.since,
    seenAt: row.seen_at,
    onVersionAt: row.on_version_at,
    hasFailed: row.failed_at !== null,
    isBlocked: row.blocked_at !== null,
    trustBefore: row.trust_before,
    trust: row.trust,
    isRestricted: row.restricted_at !== null,
    attempts: row.attempts,
    failures: row.failures,
    speedRatio: row.speed_ratio,
    owner: row.owner ?? row.provider_id,
    isVolunteer: row.is_volunteer === 1,
  };
}

export function rolloutOf(row: RolloutRow): Rollout {
  return {
    version: row.version,
    state: row.state,
    stage: row.stage,
    startedAt: row.started_at,
    stageStartedAt: row.stage_started_at,
    isUrgent: row.urgent_since !== null,
    evidenceSince: row.evidence_since,
    endedAt: row.ended_at,
    reason: row.reason,
    changedBy: row.changed_by,
  };
}
