/** `SimulatedMac`: hardware and job execution of one machine. Jobs share its rates; each slot caches its last prompt. */
import type { Hardware, ModelOffer, ProviderId } from '@inference/protocol';
import type { EventQueue } from './event-queue.js';
import { CHIPS, type Chip, MODELS } from './hardware.js';
import { type Random, WeightedIndex } from './random.js';
import type { Job } from './workload.js';

/** Job events that a machine reports. */
export interface JobEvents {
  firstToken(): void;
  done(cachedTokens: number): void;
  failed(reason: 'fault' | 'offline' | 'full'): void;
}

interface Running {
  readonly job: Job;
  readonly resident: InstalledModel;
  readonly events: JobEvents;
  readonly sequence: PromptSlot | null;
  readonly cachedTokens: number;
  phase: 'loading' | 'prompt' | 'answer';
  /** Remaining tokens of the current phase: prompt or completion. */
  remainingTokens: number;
}

/** Slot of the engine, with the prompt that its KV cache holds. */
interface PromptSlot {
  conversation: number;
  account: number;
  systemTokens: number;
  tokens: number;
  busy: boolean;
  usedAt: number;
}

export interface MacOptions {
  readonly events: EventQueue;
  readonly random: Random;
  readonly changed: (mac: SimulatedMac) => void;
  /** Probability that a model is loaded at the start, if memory suffices. */
  readonly inMemory: number;
}

interface InstalledModel {
  state: 'ready' | 'loading' | 'on_demand';
  readonly gigabytes: number;
  readonly loadMs: number;
  /** True rates of a job alone on a cool machine, in tokens per second. */
  readonly prefillTps: number;
  readonly decodeTps: number;
  usedAt: number;
  readonly sequences: PromptSlot[];
}

const CHIP_WEIGHTS = new WeightedIndex(CHIPS.map(({ weight }) => weight));
const MODEL_WEIGHTS = MODELS.map((_, rank) => (rank + 1) ** -0.6);
/** Share of memory available to models. */
const MODEL_MEMORY_SHARE = 0.7;
const HOT = 0.85;
const COOL = 0.5;
/** Busy time until a fanless machine is hot, and idle time until cool, in milliseconds. */
const HEATS_IN_MS = 8 * 60_000;
const COOLS_IN_MS = 5 * 60_000;
const HOT_SPEED = 0.6;
const REFUSES_AFTER_MS = 50;
const FAILS_AFTER_MS = 1500;
/** Tokens. */
const TOKEN_EPSILON = 1e-3;

export class SimulatedMac {
  readonly chip: Chip;
  readonly registration: { readonly identity: { readonly providerId: ProviderId }; readonly hardware: Hardware };
  readonly slots: number;
  /** Much slower than its chip; some also report a higher bandwidth. */
  readonly isMisreporting: boolean;
  /** Probability that a job fails. */
  readonly failureRate: number;
  readonly residents = new Map<string, InstalledModel>();
  models: readonly ModelOffer[] = [];
  hot = false;
  online = false;
  readonly #speed: number;
  readonly #batching: number;
  readonly #cachesPrompts: boolean;
  readonly #fanless: boolean;
  readonly #modelGigabytes: number;
  readonly #events: EventQueue;
  /** Own random source, so that machines are independent. */
  readonly random: Random;
  readonly #changed: (mac: SimulatedMac) => void;
  #running: Running[] = [];
  #heat = 0;
  #version = 0;
  #session = 0;
  advancedAt = 0;
  /** Time with at least one job, in milliseconds. */
  busyMs = 0;
  loads = 0;

  constructor(index: number, { events, random, changed, inMemory }: MacOptions) {
    this.#events = events;
    this.random = random;
    this.#changed = changed;
    this.chip = CHIPS[CHIP_WEIGHTS.draw(random)] as Chip;
    this.isMisreporting = random.happens(0.04);
    this.failureRate = random.happens(0.02) ? random.between(0.3, 1) : 0.002;
    this.#speed = random.logNormal(1, 0.12) / (this.isMisreporting ? random.between(3, 8) : 1);
    this.#batching = random.between(0.12, 0.4);
    this.#cachesPrompts = random.happens(0.85);
    this.#fanless = random.happens(this.chip.fanless);
    this.slots = this.chip.bandwidthGbs >= 400 ? 8 : 4;
    const claims = this.isMisreporting && random.happens(0.3) ? 819 : this.chip.bandwidthGbs;
    const hardware = { chip_family: this.chip.name, cpu_cores: 8, gpu_cores: 10, bandwidth_gbs: claims };
    this.registration = { identity: { providerId: `mac-${index}` as ProviderId }, hardware };
    const memory = random.pick(this.chip.memory);
    this.#modelGigabytes = memory * MODEL_MEMORY_SHARE;
    this.#chooseModels(random, inMemory);
  }

  get hasModelInMemory(): boolean {
    return [...this.residents.values()].some(({ state }) => state === 'ready');
  }

  get running(): number {
    return this.#running.length;
  }

  take(job: Job, events: JobEvents): void {
    const resident = this.residents.get(job.model);
    if (resident === undefined || !this.#freeMemoryFor(resident)) {
      this.#events.after(REFUSES_AFTER_MS, () => events.failed('full'));
      return;
    }
    if (this.random.happens(this.failureRate)) {
      this.#events.after(FAILS_AFTER_MS, () => events.failed('fault'));
      return;
    }
    this.advance();
    const sequence = this.#sequenceFor(resident, job);
    const cachedTokens = sequence === null ? 0 : commonPrefixTokens(sequence, job);
    if (sequence !== null) {
      Object.assign(sequence, {
        conversation: job.conversation,
        account: job.account,
        systemTokens: job.systemTokens,
        tokens: 0,
        busy: true,
      });
    }
    resident.usedAt = this.#events.now;
    const loading = resident.state !== 'ready';
    if (resident.state === 'on_demand') this.#load(resident);
    this.#running.push({
      job,
      resident,
      events,
      sequence,
      cachedTokens,
      phase: loading ? 'loading' : 'prompt',
      remainingTokens: Math.max(1, job.promptTokens - cachedTokens),
    });
    this.scheduleNext();
  }

  /** Goes online with its loaded models. */
  wake(): void {
    this.online = true;
    this.advancedAt = this.#events.now;
    this.#heat = 0;
    this.hot = false;
  }

  /** Goes offline and loses its jobs. */
  leave(): void {
    this.advance();
    this.online = false;
    this.#version++;
    this.#session++;
    const lost = this.#running;
    this.#running = [];
    for (const resident of this.residents.values()) {
      resident.sequences.length = 0;
      if (resident.state === 'loading') resident.state = 'on_demand';
    }
    this.#publish();
    for (const { events } of lost) events.failed('offline');
  }

  #chooseModels(random: Random, share: number): void {
    const fitting = MODELS.map((model, index) => ({ model, weight: MODEL_WEIGHTS[index] ?? 0 })).filter(
      ({ model }) => model.gigabytes <= this.#modelGigabytes,
    );
    const targetCount = 1 + random.below(3);
    let free = this.#modelGigabytes;
    while (fitting.length > 0 && this.residents.size < targetCount) {
      const [{ model }] = fitting.splice(new WeightedIndex(fitting.map(({ weight }) => weight)).draw(random), 1) as [
        (typeof fitting)[number],
      ];
      const inMemory = model.gigabytes <= free && random.happens(share);
      if (inMemory) free -= model.gigabytes;
      const loadMs = Math.round(1500 + (1000 * model.gigabytes) / random.between(1, 3));
      const { gigabytes, activeGigabytes, activeParameters } = model;
      const { prefill8b, efficiency, bandwidthGbs } = this.chip;
      this.residents.set(model.id, {
        state: inMemory ? 'ready' : 'on_demand',
        gigabytes,
        loadMs,
        prefillTps: ((prefill8b * 8) / activeParameters) * this.#speed,
        decodeTps: Math.min(250, (efficiency * bandwidthGbs) / activeGigabytes) * this.#speed,
        usedAt: 0,
        sequences: [],
      });
    }
    this.#publish();
  }

  #publish(): void {
    this.models = [...this.residents].map(([id, { state, loadMs }]) => ({
      id,
      model_type: 'text' as const,
      display_name: id,
      quantization: '4bit',
      context_length: 32_768,
      state,
      ...(state === 'ready' ? {} : { load_ms: loadMs }),
    }));
  }

  /** Whether the model is loaded or loadable; idle models are evicted. */
  #freeMemoryFor(model: InstalledModel): boolean {
    if (model.state !== 'on_demand') return true;
    let free = this.#modelGigabytes;
    for (const { state, gigabytes } of this.residents.values()) if (state !== 'on_demand') free -= gigabytes;
    const idle = [...this.residents.values()]
      .filter((one) => one.state === 'ready' && !this.#running.some(({ resident }) => resident === one))
      .sort((a, b) => a.usedAt - b.usedAt);
    for (const resident of idle) {
      if (free >= model.gigabytes) break;
      resident.state = 'on_demand';
      resident.sequences.length = 0;
      free += resident.gigabytes;
    }
    return free >= model.gigabytes;
  }

  #load(resident: InstalledModel): void {
    resident.state = 'loading';
    this.loads++;
    const session = this.#session;
    this.#events.after(resident.loadMs, () => {
      if (!this.online || session !== this.#session) return;
      this.advance();
      resident.state = 'ready';
      for (const running of this.#running) {
        if (running.phase === 'loading' && running.resident === resident) running.phase = 'prompt';
      }
      this.#publish();
      this.#changed(this);
      this.scheduleNext();
    });
    this.#publish();
    this.#changed(this);
  }

  #sequenceFor(resident: InstalledModel, job: Job): PromptSlot | null {
    if (!this.#cachesPrompts) return null;
    const { sequences } = resident;
    let best: PromptSlot | null = null;
    for (const one of sequences)
      if (!one.busy && commonPrefixTokens(one, job) > (best === null ? 0 : commonPrefixTokens(best, job))) best = one;
    if (best !== null) return best;
    if (sequences.length < this.slots) {
      const fresh = { conversation: -1, account: -1, systemTokens: 0, tokens: 0, busy: false, usedAt: 0 };
      sequences.push(fresh);
      return fresh;
    }
    for (const one of sequences) if (!one.busy && (best === null || one.usedAt < best.usedAt)) best = one;
    return best;
  }

  /** Advances running jobs by the time since the last change. */
  advance(): void {
    const { now } = this.#events;
    const ms = now - this.advancedAt;
    this.advancedAt = now;
    if (ms <= 0 || !this.online) return;
    const busy = this.#running.length > 0;
    if (busy) this.busyMs += ms;
    for (const one of this.#running) if (one.phase !== 'loading') one.remainingTokens -= (ms / 1000) * this.#rate(one);
    if (!this.#fanless) return;
    this.#heat = Math.min(1, Math.max(0, this.#heat + (busy ? ms / HEATS_IN_MS : -ms / COOLS_IN_MS)));
    const hot = this.hot ? this.#heat > COOL : this.#heat > HOT;
    if (hot === this.hot) return;
    this.hot = hot;
    this.#changed(this);
  }

  #rate({ resident: { prefillTps, decodeTps }, phase }: Running): number {
    const slower = 1 + this.#batching * (this.#running.length - 1);
    return ((phase === 'prompt' ? prefillTps : decodeTps) * (this.hot ? HOT_SPEED : 1)) / slower;
  }

  /** Schedules the next event of the running jobs. */
  scheduleNext(): void {
    const version = ++this.#version;
    let soonestMs = Number.POSITIVE_INFINITY;
    for (const one of this.#running)
      if (one.phase !== 'loading') soonestMs = Math.min(soonestMs, (1000 * one.remainingTokens) / this.#rate(one));
    if (soonestMs < Number.POSITIVE_INFINITY) {
      this.#events.after(Math.max(0, soonestMs), () => {
        if (version === this.#version) this.#step();
      });
    } else if (this.hot) {
      this.#events.after(COOLS_IN_MS, () => {
        if (version === this.#version) this.advance();
      });
    }
  }

  #step(): void {
    this.advance();
    const ended: Running[] = [];
    for (const one of this.#running) {
      if (one.phase === 'loading' || one.remainingTokens > TOKEN_EPSILON) continue;
      if (one.phase === 'prompt') {
        one.phase = 'answer';
        one.remainingTokens = one.job.completionTokens;
        one.events.firstToken();
      } else ended.push(one);
    }
    if (ended.length > 0) this.#running = this.#running.filter((one) => !ended.includes(one));
    this.scheduleNext();
    for (const { job, sequence, cachedTokens, events } of ended) {
      if (sequence !== null) {
        Object.assign(sequence, { tokens: job.promptTokens + job.completionTokens, busy: false, usedAt: this.#events.now });
      }
      events.done(cachedTokens);
    }
  }
}

/** Tokens of the common prefix of a job's prompt and a slot's cache. */
function commonPrefixTokens(sequence: PromptSlot, job: Job): number {
  if (sequence.tokens === 0) return 0;
  if (sequence.conversation === job.conversation) return Math.min(sequence.tokens, job.promptTokens - 1);
  return sequence.account === job.account ? Math.min(sequence.systemTokens, job.systemTokens, job.promptTokens - 1) : 0;
}
