/**
 * `SimulatedMac`: one machine. Concurrent jobs slow each other down, most machines cache each slot's last prompt, models load on demand,
 * some machines overheat or fail.
 */
import type { Hardware, ModelOffer, ProviderId } from '@inference/protocol';
import type { EventQueue } from './event-queue.js';
import { CHIPS, type Chip, MODELS } from './hardware.js';
import { type Random, WeightedIndex } from './random.js';
import type { Job } from './workload.js';

export interface JobEvents {
  firstToken(): void;
  done(cachedTokens: number): void;
  failed(reason: 'fault' | 'offline' | 'full'): void;
}

interface Running {
  readonly job: Job;
  readonly installed: InstalledModel;
  readonly events: JobEvents;
  readonly promptSlot: PromptSlot | null;
  readonly cachedTokens: number;
  phase: 'loading' | 'prompt' | 'answer';
  /** Remaining tokens of the current phase: prompt or completion. */
  remainingTokens: number;
}

/** Slot of the engine (room for one job), with the tokens that its KV cache holds. */
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
  /** Called when the machine's models or temperature changed. */
  readonly changed: (mac: SimulatedMac) => void;
  /** Probability that an installed model is loaded at the start, memory permitting. */
  readonly loadedShare: number;
}

interface InstalledModel {
  state: 'ready' | 'loading' | 'on_demand';
  readonly gigabytes: number;
  readonly loadMs: number;
  /** True rates in tokens per second, for a single job on a cool machine. */
  readonly prefillTps: number;
  readonly decodeTps: number;
  usedAt: number;
  readonly promptSlots: PromptSlot[];
}

const CHIP_WEIGHTS = new WeightedIndex(CHIPS.map(({ weight }) => weight));
const MODEL_WEIGHTS = MODELS.map((_, rank) => (rank + 1) ** -0.6);
/** Share of a machine's memory that models may use. */
const MODEL_MEMORY_SHARE = 0.7;
/** Heat, from 0 to 1, above which a machine becomes hot and below which a hot machine becomes cool. */
const HOT_ABOVE = 0.85;
const COOL_BELOW = 0.5;
/** Busy time in which heat rises from 0 to 1, and idle time in which heat falls from 1 to 0. */
const HEATS_IN_MS = 8 * 60_000;
const COOLS_IN_MS = 5 * 60_000;
/** Share of the speed that a hot machine retains. */
const HOT_SPEED = 0.6;
/** Time until a machine without memory for the model says so. */
const REFUSES_AFTER_MS = 50;
/** Time until a job fails that is going to. */
const FAILS_AFTER_MS = 1500;
/** Tokens left by rounding; a phase with fewer tokens is complete. */
const TOKEN_EPSILON = 1e-3;

export class SimulatedMac {
  readonly chip: Chip;
  readonly registration: { readonly identity: { readonly providerId: ProviderId }; readonly hardware: Hardware };
  readonly slots: number;
  /** Whether the machine is slower than its chip. Some of these machines also report a higher bandwidth. */
  readonly isMisreporting: boolean;
  readonly failureRate: number;
  readonly installedModels = new Map<string, InstalledModel>();
  models: readonly ModelOffer[] = [];
  hot = false;
  online = false;
  readonly #speed: number;
  readonly #batching: number;
  readonly #cachesPrompts: boolean;
  readonly #fanless: boolean;
  readonly #modelGigabytes: number;
  readonly #events: EventQueue;
  /** Separate random source per machine, so that machines are independent. */
  readonly random: Random;
  readonly #changed: (mac: SimulatedMac) => void;
  #running: Running[] = [];
  #heat = 0;
  /** Invalidates events scheduled for running jobs. */
  #version = 0;
  /** Invalidates model loads of an earlier connection. */
  #session = 0;
  advancedAt = 0;
  /** Time with at least one job, in milliseconds. */
  busyMs = 0;
  loads = 0;

  constructor(index: number, { events, random, changed, loadedShare }: MacOptions) {
    this.#events = events;
    this.random = random;
    this.#changed = changed;
    this.chip = CHIPS[CHIP_WEIGHTS.draw(random)] as Chip;
    this.isMisreporting = random.happens(0.04);
    this.failureRate = random.happens(0.02) ? random.between(0.3, 1) : 0.002;
    this.#speed = random.logNormal(1, 0.12) / (this.isMisreporting ? random.between(3, 8) : 1);
    this.#batching = random.between(0.12, 0.4);
    this.#cachesPrompts = random.happens(0.85);
    this.#fanless = random.happens(this.chip.fanlessShare);
    this.slots = this.chip.bandwidthGbs >= 400 ? 8 : 4;
    const reportedGbs = this.isMisreporting && random.happens(0.3) ? 819 : this.chip.bandwidthGbs;
    const hardware = { chip_family: this.chip.name, cpu_cores: 8, gpu_cores: 10, bandwidth_gbs: reportedGbs };
    this.registration = { identity: { providerId: `mac-${index}` as ProviderId }, hardware };
    const memory = random.pick(this.chip.memory);
    this.#modelGigabytes = memory * MODEL_MEMORY_SHARE;
    this.#chooseModels(random, loadedShare);
  }

  get hasModelInMemory(): boolean {
    return [...this.installedModels.values()].some(({ state }) => state === 'ready');
  }

  get running(): number {
    return this.#running.length;
  }

  /** Starts a job. `events` also report that the machine has no memory for the model (`full`). */
  take(job: Job, events: JobEvents): void {
    const installed = this.installedModels.get(job.model);
    if (installed === undefined || !this.#freeMemoryFor(installed)) {
      this.#events.after(REFUSES_AFTER_MS, () => events.failed('full'));
      return;
    }
    if (this.random.happens(this.failureRate)) {
      this.#events.after(FAILS_AFTER_MS, () => events.failed('fault'));
      return;
    }
    this.advance();
    const promptSlot = this.#slotFor(installed, job);
    const cachedTokens = promptSlot === null ? 0 : commonPrefixTokens(promptSlot, job);
    if (promptSlot !== null) {
      Object.assign(promptSlot, {
        conversation: job.conversation,
        account: job.account,
        systemTokens: job.systemTokens,
        tokens: 0,
        busy: true,
      });
    }
    installed.usedAt = this.#events.now;
    const loading = installed.state !== 'ready';
    if (installed.state === 'on_demand') this.#load(installed);
    this.#running.push({
      job,
      installed,
      events,
      promptSlot,
      cachedTokens,
      phase: loading ? 'loading' : 'prompt',
      remainingTokens: Math.max(1, job.promptTokens - cachedTokens),
    });
    this.scheduleNext();
  }

  /** Goes online, cool, with the models that are in memory. */
  wake(): void {
    this.online = true;
    this.advancedAt = this.#events.now;
    this.#heat = 0;
    this.hot = false;
  }

  leave(): void {
    this.advance();
    this.online = false;
    this.#version++;
    this.#session++;
    const lost = this.#running;
    this.#running = [];
    for (const installed of this.installedModels.values()) {
      installed.promptSlots.length = 0;
      if (installed.state === 'loading') installed.state = 'on_demand';
    }
    this.#publish();
    for (const { events } of lost) events.failed('offline');
  }

  #chooseModels(random: Random, loadedShare: number): void {
    const fitting = MODELS.map((model, index) => ({ model, weight: MODEL_WEIGHTS[index] ?? 0 })).filter(
      ({ model }) => model.gigabytes <= this.#modelGigabytes,
    );
    const targetCount = 1 + random.below(3);
    let free = this.#modelGigabytes;
    while (fitting.length > 0 && this.installedModels.size < targetCount) {
      const [{ model }] = fitting.splice(new WeightedIndex(fitting.map(({ weight }) => weight)).draw(random), 1) as [
        (typeof fitting)[number],
      ];
      const isLoaded = model.gigabytes <= free && random.happens(loadedShare);
      if (isLoaded) free -= model.gigabytes;
      const loadMs = Math.round(1500 + (1000 * model.gigabytes) / random.between(1, 3));
      const { gigabytes, activeGigabytes, activeParameters } = model;
      const { prefill8b, efficiency, bandwidthGbs } = this.chip;
      this.installedModels.set(model.id, {
        state: isLoaded ? 'ready' : 'on_demand',
        gigabytes,
        loadMs,
        prefillTps: ((prefill8b * 8) / activeParameters) * this.#speed,
        decodeTps: Math.min(250, (efficiency * bandwidthGbs) / activeGigabytes) * this.#speed,
        usedAt: 0,
        promptSlots: [],
      });
    }
    this.#publish();
  }

  #publish(): void {
    this.models = [...this.installedModels].map(([id, { state, loadMs }]) => ({
      id,
      model_type: 'text' as const,
      display_name: id,
      quantization: '4bit',
      context_length: 32_768,
      state,
      ...(state === 'ready' ? {} : { load_ms: loadMs }),
    }));
  }

  /** Evicts idle models, least recently used first, until the model fits. Returns false if too many models are in use. */
  #freeMemoryFor(model: InstalledModel): boolean {
    if (model.state !== 'on_demand') return true;
    let free = this.#modelGigabytes;
    for (const { state, gigabytes } of this.installedModels.values()) if (state !== 'on_demand') free -= gigabytes;
    const idle = [...this.installedModels.values()]
      .filter((one) => one.state === 'ready' && !this.#running.some(({ installed }) => installed === one))
      .sort((a, b) => a.usedAt - b.usedAt);
    for (const installed of idle) {
      if (free >= model.gigabytes) break;
      installed.state = 'on_demand';
      installed.promptSlots.length = 0;
      free += installed.gigabytes;
    }
    return free >= model.gigabytes;
  }

  #load(installed: InstalledModel): void {
    installed.state = 'loading';
    this.loads++;
    const session = this.#session;
    this.#events.after(installed.loadMs, () => {
      if (!this.online || session !== this.#session) return;
      this.advance();
      installed.state = 'ready';
      for (const running of this.#running) {
        if (running.phase === 'loading' && running.installed === installed) running.phase = 'prompt';
      }
      this.#publish();
      this.#changed(this);
      this.scheduleNext();
    });
    this.#publish();
    this.#changed(this);
  }

  /** Free slot with the longest common prefix, else a new or the least recently used slot. Null without a free slot or a prompt cache. */
  #slotFor(installed: InstalledModel, job: Job): PromptSlot | null {
    if (!this.#cachesPrompts) return null;
    const { promptSlots } = installed;
    let best: PromptSlot | null = null;
    for (const one of promptSlots)
      if (!one.busy && commonPrefixTokens(one, job) > (best === null ? 0 : commonPrefixTokens(best, job))) best = one;
    if (best !== null) return best;
    if (promptSlots.length < this.slots) {
      const fresh = { conversation: -1, account: -1, systemTokens: 0, tokens: 0, busy: false, usedAt: 0 };
      promptSlots.push(fresh);
      return fresh;
    }
    for (const one of promptSlots) if (!one.busy && (best === null || one.usedAt < best.usedAt)) best = one;
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
    const hot = this.hot ? this.#heat > COOL_BELOW : this.#heat > HOT_ABOVE;
    if (hot === this.hot) return;
    this.hot = hot;
    this.#changed(this);
  }

  #rate({ installed: { prefillTps, decodeTps }, phase }: Running): number {
    const slower = 1 + this.#batching * (this.#running.length - 1);
    return ((phase === 'prompt' ? prefillTps : decodeTps) * (this.hot ? HOT_SPEED : 1)) / slower;
  }

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

  /** Moves jobs with a completed phase to the next phase or to their end. */
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
    for (const { job, promptSlot, cachedTokens, events } of ended) {
      if (promptSlot !== null) {
        Object.assign(promptSlot, { tokens: job.promptTokens + job.completionTokens, busy: false, usedAt: this.#events.now });
      }
      events.done(cachedTokens);
    }
  }
}

function commonPrefixTokens(promptSlot: PromptSlot, job: Job): number {
  if (promptSlot.tokens === 0) return 0;
  if (promptSlot.conversation === job.conversation) return Math.min(promptSlot.tokens, job.promptTokens - 1);
  return promptSlot.account === job.account ? Math.min(promptSlot.systemTokens, job.systemTokens, job.promptTokens - 1) : 0;
}
