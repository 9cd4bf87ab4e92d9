/** `RolloutChecks`: each coordinator records its connected machines periodically; one then halts, advances or completes rollouts. */
import type { RolloutComparison } from '@inference/formats';
import { RolloutComparisonSchema } from '@inference/formats';
import { lazyValidator } from '@inference/protocol';
import Type, { type Static } from 'typebox';
import { runOncePerPeriod } from '../database/periodic-work.js';
import type { RolloutRepository, RolloutRow } from '../database/rollout-repository.js';
import type { Database } from '../database/tables.js';
import { type ConnectedMachine, fleetSums, ownerHash } from './connected-machine.js';
import type { JobOutcomes, OutcomeCounts } from './job-outcomes.js';
import { comparedMachines, observeMachines, ownerKey, rolloutOf } from './machine-records.js';
import { type ComparedMachine, isMissing, reservesCapacity } from './rollout.js';
import { checkRollout, type RolloutCheck, type RolloutStep } from './rollout-decision.js';
import { COORDINATOR, type RolloutService } from './rollout-service.js';

/** Interval of checks. */
export const CHECK_MS = 60_000;
/** How long halted and paused rollouts are still observed, so that the operator sees the outcome. */
const OBSERVE_STOPPED_MS = 24 * 3_600_000;

/** Result of the last check, stored with the rollout. */
export const FindingsSchema = Type.Object({
  waiting_for: Type.Union([Type.String(), Type.Null()]),
  machines: Type.Object({
    offered: Type.Integer({ minimum: 0 }),
    settled: Type.Integer({ minimum: 0 }),
    updating: Type.Integer({ minimum: 0 }),
    missing: Type.Integer({ minimum: 0 }),
  }),
  comparisons: Type.Array(RolloutComparisonSchema),
});
export type Findings = Static<typeof FindingsSchema>;

const isFindings = lazyValidator(FindingsSchema);

/** Findings of the last check. Null: no check yet, or stored by an incompatible version of this program. */
export function readFindings({ findings }: RolloutRow): Findings | null {
  const value: unknown = findings === null ? null : JSON.parse(findings);
  return isFindings().Check(value) ? value : null;
}

interface RolloutChecksOptions {
  readonly database: Database;
  readonly repository: RolloutRepository;
  readonly service: RolloutService;
  readonly outcomes: JobOutcomes;
  readonly localMachines: () => Iterable<ConnectedMachine>;
  /** Versions in the release file. */
  readonly published: () => Promise<readonly string[]>;
  readonly coordinatorId: string;
  readonly now: () => number;
  readonly onHalt: (version: string, reason: string) => void;
  readonly onStage: (version: string, stage: number) => void;
}

export class RolloutChecks {
  readonly #options: RolloutChecksOptions;
  readonly #startedAt: number;
  /** Start of the outcomes that the next check takes: the last check, or an earlier one whose counts were not stored. */
  #countedSince: number;

  constructor(options: RolloutChecksOptions) {
    this.#options = options;
    this.#startedAt = options.now();
    this.#countedSince = this.#startedAt;
  }

  /** Starts new rollouts, and records this coordinator's machines. Then decides, unless another coordinator did so within `periodMs`. */
  async run(periodMs: number): Promise<void> {
    const { database, service } = this.#options;
    await service.begin(await this.#options.published());
    await this.#observe();
    await runOncePerPeriod(database, 'check rollouts', periodMs, () => this.#decide());
    await service.refresh();
  }

  async #observe(): Promise<void> {
    const { outcomes, now } = this.#options;
    const since = this.#countedSince;
    const time = now();
    const counts = new Map(outcomes.take());
    this.#countedSince = time;
    try {
      await this.#store({ since, byProvider: counts }, time, (providerIds) => {
        for (const providerId of providerIds) counts.delete(providerId);
      });
    } catch (error) {
      outcomes.putBack(counts);
      this.#countedSince = since;
      throw error;
    }
  }

  /** Stores this coordinator's machines. Calls `onStored` with the ids of those whose counts were stored. */
  async #store(counts: OutcomeCounts, time: number, onStored: (providerIds: readonly string[]) => void): Promise<void> {
    const { repository, service, localMachines, coordinatorId } = this.#options;
    const machines = new Map([...localMachines()].map((machine) => [machine.provider_id as string, machine]));
    await repository.putFleet(coordinatorId, JSON.stringify(fleetSums(machines.values())), time);
    const changed = [];
    const seen = [];
    for (const row of service.rows.values()) {
      if (!isObserved(row, time)) continue;
      const observation = observeMachines(row.version, await repository.machines(row.version), machines, counts, time);
      changed.push(...observation.changed);
      seen.push({ version: row.version, ids: observation.seen, at: time });
    }
    if (seen.length > 0) await repository.observe(changed, seen, onStored);
  }

  /** Checks all observed rollouts, and stores the findings and the changes. */
  async #decide(): Promise<void> {
    const { repository, service, now } = this.#options;
    await service.refresh();
    const { fleet, policy } = service;
    for (const { version } of service.rows.values()) {
      const rollout = service.rows.get(version);
      if (!isObserved(rollout, now())) continue;
      const rows = await repository.machines(version);
      // Keeps the last findings after the machines were deleted.
      if (rows.length === 0 && rollout?.state !== 'active') continue;
      const time = now();
      let report = (): void => {};
      await repository.change(version, (row) => {
        const machines = comparedMachines(rows, row.evidence_since);
        const check = checkRollout(rolloutOf(row), policy, {
          fleet,
          machines,
          trustedOwners: new Set(policy.canary_accounts.map((accountId) => ownerKey(version, ownerHash(accountId)))),
          machinesByOwner: new Map([...fleet.machinesByOwner].map(([owner, count]) => [ownerKey(version, owner), count])),
          noAccount: ownerKey(version, ownerHash(null)),
          now: time,
          startedAt: this.#startedAt,
        });
        const checked = { findings: JSON.stringify(findingsOf(row, machines, check, time)), checked_at: time };
        if (row.state !== 'active') return row.state === 'complete' ? null : checked;
        // Reported after the transaction, which may be retried.
        report = () => this.#report(row, check.step);
        return { ...checked, ...changeBy(check.step, row, time) };
      });
      report();
    }
    await repository.prune(now());
  }

  #report({ version, stage }: RolloutRow, step: RolloutStep): void {
    const { onHalt, onStage } = this.#options;
    if (step.kind === 'halt') onHalt(version, step.reason);
    // `stage` is the index of the old stage. Reports count stages from 1.
    else if (step.kind === 'advance') onStage(version, stage + 2);
  }
}

function findingsOf({ state }: RolloutRow, machines: readonly ComparedMachine[], check: RolloutCheck, now: number): Findings {
  const { step, comparisons, settledMachines } = check;
  const updated = machines.filter(({ part }) => part === 'updated');
  return {
    waiting_for: state === 'active' && step.kind === 'stay' ? step.waitingFor : null,
    machines: {
      offered: updated.length,
      settled: settledMachines,
      updating: updated.filter((machine) => reservesCapacity(machine, now)).length,
      missing: updated.filter((machine) => isMissing(machine, now)).length,
    },
    comparisons: selectComparisons(comparisons),
  };
}

/** Changes that a step makes to the row of an active rollout. */
function changeBy(step: RolloutStep, { stage }: RolloutRow, now: number): Partial<RolloutRow> {
  switch (step.kind) {
    case 'halt':
      return { state: 'halted', reason: step.reason, ended_at: now, changed_by: COORDINATOR };
    case 'advance':
      return { stage: stage + 1, stage_started_at: now, changed_by: COORDINATOR };
    case 'complete':
      return { state: 'complete', ended_at: now, changed_by: COORDINATOR };
    case 'stay':
      return {};
    default:
      return step satisfies never;
  }
}

function isObserved(row: RolloutRow | undefined, now: number): boolean {
  if (row === undefined || row.state === 'complete') return false;
  return row.state === 'active' || now - (row.ended_at ?? 0) < OBSERVE_STOPPED_MS;
}

/** Maximum comparisons stored with a rollout. */
const MAX_COMPARISONS = 50;

/** Comparisons of all machines, and those of cohorts that are worse or a concern. */
function selectComparisons(comparisons: readonly RolloutComparison[]): RolloutComparison[] {
  const isNoticeable = ({ cohort, verdict }: RolloutComparison): boolean => cohort === null || verdict === 'worse' || verdict === 'concern';
  return comparisons.filter(isNoticeable).slice(0, MAX_COMPARISONS);
}
