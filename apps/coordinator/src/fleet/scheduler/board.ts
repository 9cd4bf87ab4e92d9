/**
 * The providers of one model, kept in groups: those that may take a job by their traits, the others by the gate that is closed.
 * A change moves one member between two groups, so that a choice looks at groups and never at everyone.
 */
import type { ProviderId } from '@inference/protocol';
import { CONSTANTS, type SchedulerConstants } from './constants.js';
import { isUntried, rateKey, type Speed, type Tariff, type Traits, tariffOf, traitsKey, traitsOf } from './cost.js';
import { bearersOf, type Gate, gateOf, isPassing, type ProviderFacts } from './gates.js';
import { IdleLine, type Idler } from './idle-line.js';
import { type Load, READY } from './load.js';
import { type CountedSpeed, SpeedHistogram } from './speed-histogram.js';
import { TariffTable } from './tariff-table.js';

/** A provider that serves the model. */
export interface Member<S> {
  readonly subject: S;
  readonly facts: ProviderFacts;
  /** As measured, or as guessed from what the machine claims to be. */
  readonly speed: Speed;
  /** Most tokens of prompt and answer. */
  readonly contextLength: number;
  readonly load: Load;
  readonly overdue: boolean;
  /** Where it stands now. */
  readonly group: OpenGroup<S> | ClosedGroup<S> | null;
}

/** Members that no gate keeps out and that are equals. */
export interface OpenGroup<S> {
  readonly open: true;
  readonly traits: Traits;
  readonly tariff: Tariff;
  readonly members: readonly Member<S>[];
}

export interface ClosedGroup<S> {
  readonly open: false;
  readonly gate: Gate;
  readonly hardwareTrust: boolean;
  readonly members: readonly Member<S>[];
}

/** What a choice is made from. */
export interface Snapshot<S> {
  readonly open: readonly OpenGroup<S>[];
  /** Costs of `open`, row by row. */
  readonly tariffs: TariffTable;
  readonly constants: SchedulerConstants;
  /** Whether any open group waits to be measured. */
  readonly hasUnmeasured: boolean;
  /** Whether any open group has not proved itself; see {@link isUnproved}. */
  readonly hasUnproved: boolean;
  /** Whether those had less than their share of the model's latest jobs. */
  readonly unprovedMayTry: boolean;
  /** Whether any open group had no work for long. */
  readonly hasOverdue: boolean;
  /** Jobs at once of those that take jobs and have the model in memory or load it. */
  readonly slots: number;
  /** Members that take jobs and load the model; and those that have it. */
  readonly loading: number;
  readonly ready: number;
  readonly closed: Iterable<ClosedGroup<S>>;
  member(providerId: ProviderId): Member<S> | undefined;
  ofSerial(serialNumber: string): readonly Member<S>[];
}

interface Open<S> extends OpenGroup<S> {
  readonly key: number;
  readonly members: Entry<S>[];
  /** Place in the list of groups. */
  position: number;
}

interface Closed<S> extends ClosedGroup<S> {
  readonly key: number;
  readonly members: Entry<S>[];
}

type Group<S> = Open<S> | Closed<S>;

interface Entry<S> extends Idler {
  readonly subject: S;
  facts: ProviderFacts;
  speed: Speed;
  /** Key of the rates that placement goes by. */
  rates: number;
  /** Null: it is untried. */
  countedSpeed: CountedSpeed | null;
  contextLength: number;
  load: Load;
  overdue: boolean;
  /** It is among those that take jobs. */
  counted: boolean;
  group: Group<S> | null;
  /** Place in the group's list. */
  position: number;
}

export class Board<S> implements Snapshot<S> {
  readonly #entries = new Map<ProviderId, Entry<S>>();
  readonly #serials = new Map<string, Entry<S>[]>();
  readonly #open: Open<S>[] = [];
  readonly #openByKey = new Map<number, Open<S>>();
  readonly #closed = new Map<number, Closed<S>>();
  readonly tariffs = new TariffTable();
  readonly constants: SchedulerConstants;
  /** Open members without overdue work, those without work for longest first. */
  readonly #idle = new IdleLine<Entry<S>>();
  readonly #loading = new Set<Entry<S>>();
  #unmeasured = 0;
  #unproved = 0;
  /** The model's latest jobs, and those of them on machines that had not proved themselves. */
  #latestJobs = 0;
  #latestUnprovedJobs = 0;
  readonly #measuredSpeeds = new SpeedHistogram();
  readonly #untriedEntries = new Set<Entry<S>>();
  /** No machine is believed to be faster before an answer of it verified; null: none is measured. */
  #believedSpeed: Pick<Speed, 'prefillTps' | 'decodeTps'> | null = null;
  #overdue = 0;
  #serving = 0;
  #slots = 0;
  #hardwareSlots = 0;
  #ready = 0;
  #refreshedAt = 0;
  /** Null: not known until someone asks. */
  #longest: { readonly tokens: number | null } | null = null;

  constructor(constants: SchedulerConstants = CONSTANTS) {
    this.constants = constants;
  }

  get open(): readonly OpenGroup<S>[] {
    return this.#open;
  }

  get closed(): Iterable<ClosedGroup<S>> {
    return this.#closed.values();
  }

  get hasUnmeasured(): boolean {
    return this.#unmeasured > 0;
  }

  get hasUnproved(): boolean {
    return this.#unproved > 0;
  }

  get unprovedMayTry(): boolean {
    return this.#latestUnprovedJobs < this.constants.unprovedShare * (this.#latestJobs + 1);
  }

  get hasOverdue(): boolean {
    return this.#overdue > 0;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Members that take jobs, if not all at this moment. */
  get serving(): number {
    return this.#serving;
  }

  /** Jobs that those take at once which have the model in memory, or load it. */
  get slots(): number {
    return this.#slots;
  }

  /** Of these, those on machines of trust level `hardware`. */
  get hardwareSlots(): number {
    return this.#hardwareSlots;
  }

  get loading(): number {
    return this.#loading.size;
  }

  get ready(): number {
    return this.#ready;
  }

  /** Members that take jobs and would have to load the model first. */
  get cold(): number {
    return this.#serving - this.#ready - this.#loading.size;
  }

  /** The longest context among those, in tokens; null when there are none. */
  get longestContext(): number | null {
    if (this.#longest === null) {
      let tokens: number | null = null;
      for (const { group, contextLength } of this.#entries.values()) {
        if (group !== null && isServing(group)) tokens = Math.max(tokens ?? 0, contextLength);
      }
      this.#longest = { tokens };
    }
    return this.#longest.tokens;
  }

  member(providerId: ProviderId): Member<S> | undefined {
    return this.#entries.get(providerId);
  }

  members(): Iterable<Member<S>> {
    return this.#entries.values();
  }

  ofSerial(serialNumber: string): readonly Member<S>[] {
    return bearersOf(this.#serials.get(serialNumber) ?? []);
  }

  /** Takes in a provider, or what is new of it. A provider's serial number never changes. `now` in milliseconds. */
  put(subject: S, facts: ProviderFacts, speed: Speed, contextLength: number, now: number, load: Load = READY): void {
    const known = this.#entries.get(facts.providerId);
    const entry = known?.subject === subject ? known : this.#add(subject, facts, speed, contextLength, load);
    this.#uncount(entry);
    if (entry.contextLength !== contextLength) this.#longest = null;
    if (facts.usedSlots > entry.facts.usedSlots) {
      entry.overdue = false;
      this.#idle.remove(entry);
    }
    entry.facts = facts;
    if (entry.speed !== speed) {
      entry.speed = speed;
      this.#countSpeed(entry);
    }
    entry.contextLength = contextLength;
    entry.load = load;
    this.#settle(entry, now);
  }

  /** A provider was given a job. */
  began(providerId: ProviderId): void {
    const entry = this.#entries.get(providerId);
    if (entry === undefined) return;
    this.#latestJobs = this.#latestJobs * LATEST_JOBS_DECAY + 1;
    this.#latestUnprovedJobs = this.#latestUnprovedJobs * LATEST_JOBS_DECAY + (isUnprovedMember(entry) ? 1 : 0);
  }

  /** Takes in that time has passed: what loads is nearer to its end, and who had no work becomes overdue. `now` in milliseconds. */
  refresh(now: number): void {
    // A clock that was set back is no reason to wait until it is there again.
    const wasSetBack = now < this.#refreshedAt;
    if (!wasSetBack && now - this.#refreshedAt < REFRESH_MS) return;
    this.#refreshedAt = now;
    if (wasSetBack) this.#idle.notAfter(now);
    this.#takeBelievedSpeed(now);
    for (const entry of [...this.#loading]) this.#resettle(entry, now);
    // Listed first, because one that has a job goes to the end of the line, where this must not find it again.
    for (const entry of this.#idle.until(now - this.constants.overdueMs)) {
      this.#idle.remove(entry);
      // A long job is work as well.
      entry.overdue = entry.facts.usedSlots === 0;
      this.#resettle(entry, now);
    }
  }

  /** Forgets the provider, unless another subject has taken its place. */
  remove(subject: S, providerId: ProviderId): void {
    const entry = this.#entries.get(providerId);
    if (entry !== undefined && entry.subject === subject) this.#drop(entry);
  }

  #resettle(entry: Entry<S>, now: number): void {
    this.#uncount(entry);
    this.#settle(entry, now);
  }

  /** Puts an entry into the group where it belongs, and counts it. */
  #settle(entry: Entry<S>, now: number): void {
    const group = this.#groupFor(entry, now);
    if (group !== entry.group) {
      this.#take(entry);
      entry.position = group.members.push(entry) - 1;
      entry.group = group;
    }
    // Who cannot have work is not overdue, and who fails or would have to load is not asked for that reason alone.
    if (!group.open || entry.load.kind === 'cold' || entry.facts.failuresInARow > 0) this.#idle.remove(entry);
    else if (!entry.overdue && !entry.listed) this.#idle.add(entry, now);
    if (isServing(group) !== entry.counted) this.#longest = null;
    entry.counted = isServing(group);
    if (!entry.counted) return;
    this.#serving++;
    if (entry.load.kind === 'cold') return;
    this.#slots += entry.facts.slots;
    if (entry.facts.trustLevel === 'hardware') this.#hardwareSlots += entry.facts.slots;
    if (entry.load.kind === 'ready') this.#ready++;
    else this.#loading.add(entry);
  }

  /** Before anything of an entry that is counted changes. */
  #uncount(entry: Entry<S>): void {
    if (!entry.counted) return;
    this.#serving--;
    if (entry.load.kind === 'cold') return;
    this.#slots -= entry.facts.slots;
    if (entry.facts.trustLevel === 'hardware') this.#hardwareSlots -= entry.facts.slots;
    if (entry.load.kind === 'ready') this.#ready--;
    else this.#loading.delete(entry);
  }

  #add(subject: S, facts: ProviderFacts, speed: Speed, contextLength: number, load: Load): Entry<S> {
    const older = this.#entries.get(facts.providerId);
    if (older !== undefined) this.#drop(older);
    const entry: Entry<S> = {
      subject,
      facts,
      speed,
      rates: 0,
      countedSpeed: null,
      contextLength,
      load,
      overdue: false,
      counted: false,
      group: null,
      position: 0,
      idleSince: 0,
      listed: false,
      before: null,
      after: null,
    };
    this.#entries.set(facts.providerId, entry);
    this.#countSpeed(entry);
    const same = this.#serials.get(facts.serialNumber);
    if (same === undefined) this.#serials.set(facts.serialNumber, [entry]);
    else same.push(entry);
    return entry;
  }

  #drop(entry: Entry<S>): void {
    this.#uncount(entry);
    this.#idle.remove(entry);
    this.#longest = null;
    this.#take(entry);
    this.#uncountSpeed(entry);
    this.#entries.delete(entry.facts.providerId);
    const rest = (this.#serials.get(entry.facts.serialNumber) ?? []).filter((other) => other !== entry);
    if (rest.length === 0) this.#serials.delete(entry.facts.serialNumber);
    else this.#serials.set(entry.facts.serialNumber, rest);
  }

  /** Takes in the entry's speed: that of a tried machine counts for the quantile, and an untried one is limited by it. */
  #countSpeed(entry: Entry<S>): void {
    this.#uncountSpeed(entry);
    if (isUntried(entry.speed)) this.#untriedEntries.add(entry);
    else entry.countedSpeed = this.#measuredSpeeds.add(entry.speed);
    entry.rates = rateKey(this.#believed(entry.speed));
  }

  #uncountSpeed(entry: Entry<S>): void {
    if (entry.countedSpeed !== null) this.#measuredSpeeds.remove(entry.countedSpeed);
    entry.countedSpeed = null;
    this.#untriedEntries.delete(entry);
  }

  /** The speed that placement goes by: an untried machine is no faster than nine in ten of the others. */
  #believed(speed: Speed): Speed {
    if (this.#believedSpeed === null || !isUntried(speed)) return speed;
    const { prefillTps, decodeTps } = this.#believedSpeed;
    return { ...speed, prefillTps: Math.min(speed.prefillTps, prefillTps), decodeTps: Math.min(speed.decodeTps, decodeTps) };
  }

  #takeBelievedSpeed(now: number): void {
    if (this.#untriedEntries.size === 0) return;
    const believed = this.#measuredSpeeds.quantile();
    const before = this.#believedSpeed;
    if (believed?.prefillTps === before?.prefillTps && believed?.decodeTps === before?.decodeTps) return;
    this.#believedSpeed = believed;
    for (const entry of this.#untriedEntries) {
      entry.rates = rateKey(this.#believed(entry.speed));
      this.#resettle(entry, now);
    }
  }

  #groupFor(entry: Entry<S>, now: number): Group<S> {
    const { facts, rates } = entry;
    const gate = gateOf(facts, now);
    if (gate === null) {
      const key = traitsKey(facts, rates, entry, now);
      let group = this.#openByKey.get(key);
      if (group === undefined) {
        const traits = traitsOf(facts, this.#believed(entry.speed), entry, now);
        const tariff = tariffOf(traits, this.constants);
        group = { key, open: true, traits, tariff, members: [], position: this.#open.length };
        this.tariffs.set(group.position, group.tariff);
        this.#open.push(group);
        if (isUnmeasured(group)) this.#unmeasured++;
        if (isUnproved(group)) this.#unproved++;
        if (isOverdue(group)) this.#overdue++;
        this.#openByKey.set(key, group);
      }
      return group;
    }
    const hardwareTrust = facts.trustLevel === 'hardware';
    const key = GATES.indexOf(gate) * 2 + (hardwareTrust ? 1 : 0);
    let group = this.#closed.get(key);
    if (group === undefined) {
      group = { key, open: false, gate, hardwareTrust, members: [] };
      this.#closed.set(key, group);
    }
    return group;
  }

  /** Takes an entry out of its group; the last of the list gets its place. */
  #take(entry: Entry<S>): void {
    const { group } = entry;
    if (group === null) return;
    const last = group.members.pop();
    if (last !== undefined && last !== entry) {
      group.members[entry.position] = last;
      last.position = entry.position;
    }
    if (group.members.length === 0) this.#close(group);
    entry.group = null;
  }

  #close(group: Group<S>): void {
    if (!group.open) {
      this.#closed.delete(group.key);
      return;
    }
    this.#openByKey.delete(group.key);
    if (isUnmeasured(group)) this.#unmeasured--;
    if (isUnproved(group)) this.#unproved--;
    if (isOverdue(group)) this.#overdue--;
    const last = this.#open.pop();
    if (last === undefined || last === group) return;
    this.#open[group.position] = last;
    last.position = group.position;
    this.tariffs.set(last.position, last.tariff);
  }
}

/** Time passes in steps of this, in milliseconds. */
const REFRESH_MS = 250;

/** Share of the latest jobs is that of about the last hundred. */
const LATEST_JOBS_DECAY = 0.99;

const GATES: readonly Gate[] = [
  'quarantined',
  'draining',
  'away',
  'key_expired',
  'untrusted',
  'below_min_trust_level',
  'low_battery',
  'too_hot',
  'no_memory',
  'held_off',
  'cooling_down',
  'on_probation',
  'no_free_slot',
];

/** Whether the group's machines wait to be measured. One that fails waits until it is well. */
export function isUnmeasured<S>({ traits }: OpenGroup<S>): boolean {
  return !traits.measured && traits.failures === 0 && !traits.cold;
}

/** Whether nothing shows what the group's machines are: neither a verified answer nor their maker's certificate chain. */
export function isUnproved<S>({ traits }: OpenGroup<S>): boolean {
  return traits.untried && !traits.hardwareTrust;
}

function isUnprovedMember<S>({ facts, speed }: Pick<Member<S>, 'facts' | 'speed'>): boolean {
  return isUntried(speed) && facts.trustLevel !== 'hardware';
}

/** Whether the group's machines had no work for long, though they could have had some. */
export function isOverdue<S>({ traits }: OpenGroup<S>): boolean {
  return traits.overdue && traits.failures === 0 && !traits.cold;
}

function isServing<S>(group: Group<S>): boolean {
  return group.open || isPassing(group.gate);
}
