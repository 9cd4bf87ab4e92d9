/**
 * `RolloutService` starts rollouts of published agent versions, decides about offers to machines, and applies operators' actions.
 *
 * A rollout spreads one version over the machines in stages. The state is in the database, with a copy in memory.
 */
import { DEFAULT_ROLLOUT_POLICY, type RolloutAct, type RolloutPolicy, RolloutPolicySchema } from '@inference/formats';
import { compareVersions, lazyValidator } from '@inference/protocol';
import { PeriodicRefresh } from '../database/periodic-refresh.js';
import type { RelevantMachines, RolloutMachineRow, RolloutRepository, RolloutRow } from '../database/rollout-repository.js';
import { type ConnectedMachine, FleetSumsSchema, totalFleet } from './connected-machine.js';
import { pickControls } from './control-sample.js';
import { comparedMachine, newRow, rolloutOf } from './machine-records.js';
import {
  isInStage,
  type NotOffered,
  type OfferInput,
  type ReservedSlots,
  reservedSlots,
  rolloutPosition,
  whyNotOffered,
} from './offer-policy.js';
import {
  CONNECTED_MS,
  type ComparedMachine,
  DEPARTURE_MS,
  type Fleet,
  type MachineTraits,
  MISSING_MS,
  OFFER_MS,
  reservesCapacity,
  stageRules,
} from './rollout.js';

interface RolloutServiceOptions {
  readonly repository: RolloutRepository;
  readonly now: () => number;
  /** Machines connected to this coordinator. */
  readonly localMachines: () => Iterable<ConnectedMachine>;
  readonly onError: (error: unknown) => void;
  /** Called after a rollout or the policy changed, to notify other coordinators. */
  readonly onWrite: () => void;
  readonly refreshMs?: number;
}

export interface UpdateRequest {
  readonly machine: ConnectedMachine;
  /** Whether the owner chose to receive versions in the first stage. */
  readonly isCanary: boolean;
  /** Whether the owner requested this version now. */
  readonly isOwnerRequest: boolean;
  /** Whether the agent only checks for updates. Then nothing is recorded or reserved. */
  readonly isCheck: boolean;
}

const REFRESH_MS = 3000;
/** Maximum wait of an offer for the lock on the rollout. Machines that may become missing during the wait are also read. */
const MAX_LOCK_WAIT_MS = 30_000;
const checkPolicy = lazyValidator(RolloutPolicySchema);
const checkSums = lazyValidator(FleetSumsSchema);
/** No reserved slots, so that capacity does not limit an offer. */
const NOTHING_UPDATING: ReservedSlots = { slots: 0, byModel: new Map(), byChip: new Map() };

export class RolloutService {
  readonly #options: RolloutServiceOptions;
  readonly #refreshing: PeriodicRefresh;
  #rows: ReadonlyMap<string, RolloutRow> = new Map();
  #policy: RolloutPolicy = DEFAULT_ROLLOUT_POLICY;
  #fleet: Fleet = totalFleet([]);

  /** Loads the rollouts and starts reloading them. Callers must close the service. */
  static async open(options: RolloutServiceOptions): Promise<RolloutService> {
    const service = new RolloutService(options);
    await service.#refreshing.begin();
    return service;
  }

  private constructor(options: RolloutServiceOptions) {
    this.#options = options;
    const { onError, refreshMs = REFRESH_MS } = options;
    this.#refreshing = new PeriodicRefresh({ read: () => this.refresh(), everyMs: refreshMs, onError });
  }

  get policy(): RolloutPolicy {
    return this.#policy;
  }

  get fleet(): Fleet {
    return this.#fleet;
  }

  /** Rollouts as of the last read. */
  get rows(): ReadonlyMap<string, RolloutRow> {
    return this.#rows;
  }

  async refresh(): Promise<void> {
    const { repository, now } = this.#options;
    const [rows, policy, fleets] = await Promise.all([repository.rollouts(), repository.policy(), repository.fleets(now())]);
    this.#rows = new Map(rows.map((row) => [row.version, row]));
    this.#policy = policy === null ? DEFAULT_ROLLOUT_POLICY : parsePolicy(policy);
    this.#fleet = totalFleet(fleets.map((text): unknown => JSON.parse(text)).filter((sums) => checkSums().Check(sums)));
  }

  /** Reloads the state after another coordinator changed it. Never rejects. */
  changedElsewhere(): Promise<void> {
    return this.#refreshing.refreshNow();
  }

  /** Like {@link begin}, but never rejects. A version without a rollout is offered to no machine. */
  async tryBegin(published: readonly string[]): Promise<void> {
    await this.begin(published).catch(this.#options.onError);
  }

  /** Starts a rollout of each published version that has none. */
  async begin(published: readonly string[]): Promise<void> {
    if (published.every((version) => this.#rows.has(version))) return;
    const { repository, now, onWrite } = this.#options;
    await repository.add((known) => newRollouts(known, published, this.#policy, now()));
    await this.#pauseSuperseded(published);
    onWrite();
    await this.refresh();
  }

  /** Null: the machine is offered the version. Returns `capacity` also if the database does not answer. Never rejects. */
  async offer(version: string, request: UpdateRequest): Promise<NotOffered | null> {
    try {
      return await this.#offer(version, request);
    } catch (error) {
      this.#options.onError(error);
      return 'capacity';
    }
  }

  async #offer(version: string, request: UpdateRequest): Promise<NotOffered | null> {
    const { repository, now } = this.#options;
    const cached = this.#rows.get(version);
    if (cached === undefined) return 'stopped';
    if (cached.state === 'complete') return null;
    const traits = traitsOf(request.machine);
    const whyNotEarly = (row: RolloutMachineRow | null): NotOffered | null =>
      whyNotOffered(this.#offerInput(cached, request, row === null ? null : comparedMachine(row), NOTHING_UPDATING));
    // Checked without a transaction first, because most machines are not in the stage.
    let early = whyNotEarly(null);
    if (early === 'later_stage') early = whyNotEarly(await repository.offeredMachine(version, traits.providerId));
    if (early !== null) return early;
    const offered = await repository.changeMachines(version, relevantTo(traits, now()), (row, machines) =>
      this.#offerWhileLocked(row, machines, request),
    );
    return offered === undefined ? 'stopped' : offered;
  }

  #offerInput(row: RolloutRow, request: UpdateRequest, earlier: ComparedMachine | null, updating: ReservedSlots): OfferInput {
    return {
      rollout: rolloutOf(row),
      rules: stageRules(rolloutOf(row), this.#policy),
      machine: traitsOf(request.machine),
      isCanary: request.isCanary || this.#isOperatorsCanary(request.machine),
      isOwnerRequest: request.isOwnerRequest,
      fleet: this.#fleet,
      earlier,
      updating,
      now: this.#options.now(),
    };
  }

  #isOperatorsCanary({ account_id }: ConnectedMachine): boolean {
    return account_id !== null && this.#policy.canary_accounts.includes(account_id);
  }

  /** Decides about an offer while no other coordinator can reserve capacity. */
  #offerWhileLocked(row: RolloutRow, machines: readonly RolloutMachineRow[], request: UpdateRequest): OfferChange {
    const { machine, isCheck } = request;
    const { version } = row;
    const time = this.#options.now();
    if (row.state === 'complete') return { result: null, rows: [] };
    const compared = machines.filter(({ part }) => part === 'updated').map(comparedMachine);
    const earlier = compared.find(({ providerId }) => providerId === machine.provider_id) ?? null;
    const counted = compared.filter(({ at }) => at >= row.evidence_since);
    const input = this.#offerInput(row, request, earlier, reservedSlots(counted, time));
    const why = whyNotOffered(input);
    // A blocked machine is not compared and reserves no capacity, because its update cannot cost jobs.
    if (why !== null || isCheck || machine.is_blocked) return { result: why, rows: [] };
    // A repeated request changes nothing until `OFFER_MS`. Later, the row would reserve nothing while the machine is connected.
    if (earlier !== null && !earlier.hasFailed && time - earlier.at < OFFER_MS && reservesCapacity(earlier, time))
      return { result: null, rows: [] };
    const isVolunteer = !this.#isOperatorsCanary(machine) && !isInStage(version, input.machine, input.rules, this.#fleet);
    const controls = this.#pickControls(version, machines, machine, time);
    return {
      result: null,
      rows: [
        newRow(version, 'updated', machine, time, isVolunteer),
        ...controls.map((control) => newRow(version, 'control', control, time)),
      ],
    };
  }

  /** Picks connected machines without the version, for comparison with the offered one. */
  #pickControls(version: string, rows: readonly RolloutMachineRow[], offered: ConnectedMachine, time: number): ConnectedMachine[] {
    const updated = new Set(rows.flatMap(({ part, provider_id }) => (part === 'updated' ? [provider_id] : [])));
    const sampledAt = new Map(rows.flatMap(({ part, provider_id, since }) => (part === 'control' ? [[provider_id, since]] : [])));
    const routable = [...this.#options.localMachines()].filter(({ is_blocked }) => !is_blocked);
    const candidates = routable.map((machine) => ({
      machine,
      providerId: machine.provider_id,
      chipFamily: machine.chip_family,
      isUpdated: updated.has(machine.provider_id) || (machine.version !== null && compareVersions(machine.version, version) >= 0),
      sampledAt: sampledAt.get(machine.provider_id) ?? null,
    }));
    return pickControls({ ...traitsOf(offered), version }, candidates, time).map(({ machine }) => machine);
  }

  /**
   * Decides for an agent that does not identify its machine. `key`: network address; null: unknown.
   *
   * Records nothing, so that nobody can use up the capacity.
   */
  offerUnknown(version: string, key: string | null): NotOffered | null {
    const row = this.#rows.get(version);
    if (row === undefined) return 'stopped';
    if (row.state === 'complete') return null;
    if (row.state !== 'active') return 'stopped';
    return key !== null && rolloutPosition(key, version) < stageRules(rolloutOf(row), this.#policy).percent / 100 ? null : 'later_stage';
  }

  /** Records that the version failed its trial on a machine. Never rejects; errors go to `onError`. */
  async reportFailure(version: string, machine: ConnectedMachine): Promise<void> {
    await this.#reportFailure(version, machine).catch(this.#options.onError);
  }

  async #reportFailure(version: string, machine: ConnectedMachine): Promise<void> {
    if (this.#rows.get(version) === undefined || machine.version === version) return;
    const { repository, now } = this.#options;
    await repository.changeMachines(version, relevantTo(traitsOf(machine), now()), (_row, machines) => {
      const stored = machines.find(({ part, provider_id }) => part === 'updated' && provider_id === machine.provider_id);
      // Without an offer, the report is ignored. Otherwise outsiders could halt a rollout.
      if (stored === undefined || stored.failed_at !== null) return { result: null, rows: [] };
      return { result: null, rows: [{ ...stored, failed_at: now(), on_version_at: null, seen_at: now() }] };
    });
  }

  /** Applies an operator's action. Null: no such rollout. Throws {@link RolloutActError} if the state does not permit it. */
  async act(version: string, act: RolloutAct, operator: string, reason: string | null): Promise<RolloutRow | null> {
    const { repository, now, onWrite } = this.#options;
    let problem: string | null = null;
    const changed = await repository.change(version, (row) => {
      const change = applyAct(row, act, this.#policy, { now: now(), reason });
      if (typeof change === 'string') problem = change;
      return typeof change === 'string' ? null : { ...change, changed_by: operator };
    });
    if (problem !== null) throw new RolloutActError(problem);
    onWrite();
    await this.refresh();
    return changed;
  }

  async putPolicy(policy: RolloutPolicy, operator: string): Promise<void> {
    const { repository, now, onWrite } = this.#options;
    await repository.putPolicy(JSON.stringify(policy), operator, now());
    onWrite();
    await this.refresh();
  }

  close(): void {
    this.#refreshing.close();
  }

  /** Pauses all active rollouts of published versions except the newest, so that each machine updates only once. */
  async #pauseSuperseded(published: readonly string[]): Promise<void> {
    const { repository, now } = this.#options;
    const active = (await repository.rollouts()).filter(({ state, version }) => state === 'active' && published.includes(version));
    const newest = active.reduce<string | null>(
      (best, { version }) => (best === null || compareVersions(version, best) > 0 ? version : best),
      null,
    );
    for (const { version } of active) {
      if (newest === null || version === newest) continue;
      await repository.change(version, (row) =>
        row.state === 'active'
          ? { state: 'paused', reason: `Version ${newest} replaced it.`, ended_at: now(), changed_by: COORDINATOR }
          : null,
      );
    }
  }
}

interface OfferChange {
  /** Null: the machine is offered the version. */
  readonly result: NotOffered | null;
  /** Rows to store: one for the offer, and those of its controls. */
  readonly rows: readonly RolloutMachineRow[];
}

/** `changed_by` of changes without an operator. */
export const COORDINATOR = 'coordinator';

/** The state of the rollout does not permit the action. The message is a sentence for the operator. */
export class RolloutActError extends Error {}

function newRollouts(known: readonly RolloutRow[], published: readonly string[], policy: RolloutPolicy, now: number): RolloutRow[] {
  const versions = new Set(known.map(({ version }) => version));
  return published
    .filter((version, index) => !versions.has(version) && published.indexOf(version) === index)
    .map((version) => {
      // The first version has nothing to be compared with, and new installations need a version.
      const isForAll = known.length === 0 || policy.mode === 'immediate';
      return {
        version,
        state: isForAll ? ('complete' as const) : ('active' as const),
        stage: isForAll ? policy.stages.length - 1 : 0,
        started_at: now,
        stage_started_at: now,
        evidence_since: 0,
        urgent_since: null,
        ended_at: isForAll ? now : null,
        reason: null,
        changed_by: COORDINATOR,
        findings: null,
        checked_at: null,
      };
    });
}

/** Changes to the row, or a sentence for the operator if the state does not permit the action. */
function applyAct(
  row: RolloutRow,
  act: RolloutAct,
  policy: RolloutPolicy,
  { now, reason }: { readonly now: number; readonly reason: string | null },
): Partial<RolloutRow> | string {
  const { version, state } = row;
  switch (act) {
    case 'pause':
      return state === 'active'
        ? { state: 'paused', reason, ended_at: now }
        : `Version ${version} is ${state}; only an active rollout can be paused.`;
    case 'halt':
      if (state === 'halted') return `Version ${version} is halted already.`;
      return { state: 'halted', reason: reason ?? 'An operator halted the rollout.', ended_at: now };
    case 'resume':
      if (state !== 'paused' && state !== 'halted')
        return `Version ${version} is ${state}; only a paused or halted rollout can be resumed.`;
      return {
        state: 'active',
        reason: null,
        ended_at: null,
        stage: Math.min(row.stage, policy.stages.length - 1),
        stage_started_at: now,
        // The operator has seen the findings, so they must not halt the rollout again.
        evidence_since: state === 'halted' ? now : row.evidence_since,
      };
    case 'advance':
      if (state !== 'active') return `Version ${version} is ${state}; only an active rollout has a next stage.`;
      if (row.stage >= policy.stages.length - 1) return `Version ${version} is in its last stage; complete the rollout instead.`;
      return { stage: row.stage + 1, stage_started_at: now };
    case 'complete':
      if (state === 'complete') return `Version ${version} is complete already.`;
      return { state: 'complete', ended_at: now, reason: null };
    case 'expedite':
      if (state !== 'active' && state !== 'paused') return `Version ${version} is ${state}; only an unfinished rollout can be urgent.`;
      return row.urgent_since === null ? { urgent_since: now } : `The rollout of version ${version} is urgent already.`;
    default:
      return act satisfies never;
  }
}

/** Selects the rows that an offer needs: machines that may reserve capacity, and recent controls, which are not sampled again. */
function relevantTo({ providerId, chipFamily }: MachineTraits, now: number): RelevantMachines {
  return {
    providerId,
    chipFamily,
    controlsSince: now - DEPARTURE_MS,
    offeredSince: now - OFFER_MS,
    connectedSince: now - CONNECTED_MS + MAX_LOCK_WAIT_MS,
    missingSince: now - MISSING_MS,
  };
}

export function traitsOf({ provider_id, chip_family, models, slots }: ConnectedMachine): MachineTraits {
  return { providerId: provider_id, chipFamily: chip_family, models, slots };
}

/** Falls back to the default if this version cannot read the stored policy. */
function parsePolicy(text: string): RolloutPolicy {
  const value: unknown = JSON.parse(text);
  return checkPolicy().Check(value) ? value : DEFAULT_ROLLOUT_POLICY;
}
