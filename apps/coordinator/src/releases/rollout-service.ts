/** `RolloutService`: who is offered which version, and the operator's acts. State is in the database; a copy in memory saves reads. */
import { DEFAULT_ROLLOUT_POLICY, type RolloutAct, type RolloutPolicy, RolloutPolicySchema } from '@inference/formats';
import { compareVersions } from '@inference/protocol';
import { Compile } from 'typebox/compile';
import { PeriodicRefresh } from '../database/periodic-refresh.js';
import type { RelevantMachines, RolloutRepository, RolloutRow } from '../database/rollout-repository.js';
import { type ConnectedMachine, FleetSumsSchema, totalFleet } from './connected-machine.js';
import { pickControls } from './control-sample.js';
import { comparedMachine, newRow, rolloutOf } from './machine-records.js';
import { isInStage, type NotOffered, reservedSlots, rolloutPosition, whyNotOffered } from './offer-policy.js';
import { CONNECTED_MS, DEPARTURE_MS, type Fleet, type MachineTraits, MISSING_MS, OFFER_MS, RETURN_MS, stageRules } from './rollout.js';

interface RolloutServiceOptions {
  readonly repository: RolloutRepository;
  readonly now: () => number;
  /** Machines connected to this coordinator. */
  readonly localMachines: () => Iterable<ConnectedMachine>;
  readonly onError: (error: unknown) => void;
  /** Called after a change of a rollout or the policy, for other coordinators. */
  readonly onWrite: () => void;
  readonly refreshMs?: number;
}

/** What a machine asks for. */
export interface UpdateRequest {
  readonly machine: ConnectedMachine;
  /** The owner chose the versions of the first stage. */
  readonly isCanary: boolean;
  /** The owner asked for this version now. */
  readonly isOwnerRequest: boolean;
  /** The machine only wants to know. Nothing is recorded or reserved. */
  readonly isCheck: boolean;
}

const REFRESH_MS = 3000;
/** Machines that fall silent while an offer waits for the lock are read, too. */
const MAX_LOCK_WAIT_MS = 30_000;
const checkPolicy = Compile(RolloutPolicySchema);
const checkSums = Compile(FleetSumsSchema);
const NOTHING_UPDATING = { slots: 0, byModel: new Map(), byChip: new Map() };

export class RolloutService {
  readonly #options: RolloutServiceOptions;
  readonly #refreshing: PeriodicRefresh;
  #rows: ReadonlyMap<string, RolloutRow> = new Map();
  #policy: RolloutPolicy = DEFAULT_ROLLOUT_POLICY;
  #fleet: Fleet = totalFleet([]);

  /** Loads the rollouts and starts the periodic refresh. Callers close the service. */
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

  /** Rollouts as last read. */
  get rows(): ReadonlyMap<string, RolloutRow> {
    return this.#rows;
  }

  async refresh(): Promise<void> {
    const { repository, now } = this.#options;
    const [rows, policy, fleets] = await Promise.all([repository.rollouts(), repository.policy(), repository.fleets(now())]);
    this.#rows = new Map(rows.map((row) => [row.version, row]));
    this.#policy = policy === null ? DEFAULT_ROLLOUT_POLICY : parsePolicy(policy);
    this.#fleet = totalFleet(fleets.map((text): unknown => JSON.parse(text)).filter((sums) => checkSums.Check(sums)));
  }

  /** Reads what another coordinator wrote. Never rejects. */
  changedElsewhere(): Promise<void> {
    return this.#refreshing.now();
  }

  /** Like {@link begin}, but never rejects: until the database answers, nobody is offered an unknown version. */
  async tryBegin(published: readonly string[]): Promise<void> {
    await this.begin(published).catch(this.#options.onError);
  }

  /** Begins rollouts of published versions that have none. */
  async begin(published: readonly string[]): Promise<void> {
    if (published.every((version) => this.#rows.has(version))) return;
    const { repository, now, onWrite } = this.#options;
    await repository.add((known) => newRollouts(known, published, this.#policy, now()));
    await this.#supersede(published);
    onWrite();
    await this.refresh();
  }

  /** Null: the machine is offered the version. Without the database, nothing can be reserved: `capacity`. Never rejects. */
  async offer(version: string, request: UpdateRequest): Promise<NotOffered | null> {
    try {
      return await this.#offer(version, request);
    } catch (error) {
      this.#options.onError(error);
      return 'capacity';
    }
  }

  async #offer(version: string, { machine, isCanary, isOwnerRequest, isCheck }: UpdateRequest): Promise<NotOffered | null> {
    const { repository, now, localMachines } = this.#options;
    const cached = this.#rows.get(version);
    if (cached === undefined) return 'stopped';
    if (cached.state === 'complete') return null;
    const traits = traitsOf(machine);
    const isOperatorsCanary = machine.account_id !== null && this.#policy.canary_accounts.includes(machine.account_id);
    const question = (row: RolloutRow) => ({
      rollout: rolloutOf(row),
      rules: stageRules(rolloutOf(row), this.#policy),
      machine: traits,
      isCanary: isCanary || isOperatorsCanary,
      isOwnerRequest,
      fleet: this.#fleet,
      now: now(),
    });
    // Most machines are not in the stage, which needs no transaction.
    const early = whyNotOffered({ ...question(cached), earlier: null, updating: NOTHING_UPDATING });
    if (early !== null) return early;
    const offered = await repository.offer<NotOffered | null>(version, relevantTo(traits, now()), (row, machines) => {
      const time = now();
      if (row.state === 'complete') return { result: null, rows: [] };
      const updated = machines.filter(({ part }) => part === 'updated');
      const compared = updated.map(comparedMachine);
      const earlier = compared.find(({ providerId }) => providerId === traits.providerId) ?? null;
      const counted = compared.filter(({ at }) => at >= row.evidence_since);
      const why = whyNotOffered({ ...question(row), earlier, updating: reservedSlots(counted, time) });
      // A machine without jobs can lose none: it is neither compared nor reserves capacity.
      if (why !== null || isCheck || machine.is_blocked) return { result: why, rows: [] };
      const stored = updated.find(({ provider_id }) => provider_id === machine.provider_id);
      // A repeated question within the reservation changes nothing.
      if (stored !== undefined && earlier !== null && !earlier.hasFailed && reservedSlots([earlier], time).slots > 0)
        return { result: null, rows: [] };
      const isVolunteer = !isOperatorsCanary && !isInStage(version, traits, question(row).rules, this.#fleet);
      const known = new Set(updated.map(({ provider_id }) => provider_id));
      const sampled = new Map(machines.flatMap(({ part, provider_id, since }) => (part === 'control' ? [[provider_id, since]] : [])));
      const routable = [...localMachines()].filter(({ is_blocked }) => !is_blocked);
      const candidates = routable.map((one) => ({
        machine: one,
        providerId: one.provider_id,
        chipFamily: one.chip_family,
        isUpdated: known.has(one.provider_id) || (one.version !== null && compareVersions(one.version, version) >= 0),
        sampledAt: sampled.get(one.provider_id) ?? null,
      }));
      const controls = pickControls({ ...traits, version }, candidates, time).map((one) => newRow(version, 'control', one.machine, time));
      return { result: null, rows: [newRow(version, 'updated', machine, time, isVolunteer), ...controls] };
    });
    return offered === undefined ? 'stopped' : offered;
  }

  /**
   * For agents that do not say which machine asks. `key`: network address; null: unknown. Records nothing, so that nobody can exhaust
   * the capacity.
   */
  offerUnknown(version: string, key: string | null): NotOffered | null {
    const row = this.#rows.get(version);
    if (row === undefined) return 'stopped';
    if (row.state === 'complete') return null;
    if (row.state !== 'active') return 'stopped';
    return key !== null && rolloutPosition(key, version) < stageRules(rolloutOf(row), this.#policy).percent / 100 ? null : 'later_stage';
  }

  /** Records that the version failed its trial on this machine, if the database answers: the agent repeats it. Never rejects. */
  async reportFailure(version: string, machine: ConnectedMachine): Promise<void> {
    await this.#reportFailure(version, machine).catch(this.#options.onError);
  }

  async #reportFailure(version: string, machine: ConnectedMachine): Promise<void> {
    if (this.#rows.get(version) === undefined || machine.version === version) return;
    const { repository, now } = this.#options;
    await repository.offer(version, relevantTo(traitsOf(machine), now()), (_row, machines) => {
      const stored = machines.find(({ part, provider_id }) => part === 'updated' && provider_id === machine.provider_id);
      // Without an offer there was no update, and a report could halt a rollout from outside.
      if (stored === undefined || stored.failed_at !== null) return { result: null, rows: [] };
      return { result: null, rows: [{ ...stored, failed_at: now(), on_version_at: null, seen_at: now() }] };
    });
  }

  /** Null: there is no such rollout. Throws an Error with a sentence where the state does not permit the act. */
  async act(version: string, act: RolloutAct, operator: string, reason: string | null): Promise<RolloutRow | null> {
    const { repository, now, onWrite } = this.#options;
    let problem: string | null = null;
    const changed = await repository.change(version, (row) => {
      const change = changeOf(row, act, this.#policy, { now: now(), reason });
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

  /** A newer version replaces an unfinished one: machines should update once. */
  async #supersede(published: readonly string[]): Promise<void> {
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

export const COORDINATOR = 'coordinator';

/** The act does not fit the state of the rollout; the message is a sentence for the operator. */
export class RolloutActError extends Error {}

function newRollouts(known: readonly RolloutRow[], published: readonly string[], policy: RolloutPolicy, now: number): RolloutRow[] {
  const versions = new Set(known.map(({ version }) => version));
  return published
    .filter((version, index) => !versions.has(version) && published.indexOf(version) === index)
    .map((version) => {
      // Without earlier versions there is nothing to compare with, and a first installation must find one.
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

/** A sentence: the state does not permit the act. */
function changeOf(
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
        // The operator has seen the findings. They must not halt the rollout again.
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

/** Machines that may reserve capacity, and those that were sampled too recently to be controls again. */
function relevantTo({ providerId, chipFamily }: MachineTraits, now: number): RelevantMachines {
  return {
    providerId,
    chipFamily,
    controlsSince: now - DEPARTURE_MS,
    offeredSince: now - OFFER_MS,
    connectedSince: now - CONNECTED_MS + MAX_LOCK_WAIT_MS,
    missingSince: now - MISSING_MS,
    returnedSince: now - RETURN_MS + MAX_LOCK_WAIT_MS,
  };
}

export function traitsOf({ provider_id, chip_family, models, slots }: ConnectedMachine): MachineTraits {
  return { providerId: provider_id, chipFamily: chip_family, models, slots };
}

/** A policy that another version of this program wrote is not guessed at. */
function parsePolicy(text: string): RolloutPolicy {
  const value: unknown = JSON.parse(text);
  return checkPolicy.Check(value) ? value : DEFAULT_ROLLOUT_POLICY;
}
