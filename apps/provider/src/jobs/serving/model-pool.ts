/**
 * `ModelPool`: the served models of a machine under one memory ceiling. Jobs lease models; the pool loads and unloads models as needed.
 *
 * Jobs whose model is loaded go first, until a job has waited for memory for `priorityAfterMs`. A model in use is not unloaded for
 * memory, so a lowered ceiling takes effect once models are unused.
 */
import type { ModelOffer } from '@inference/protocol';
import type { KeepAlive } from './keep-alive.js';
import { ModelMemory } from './model-memory.js';
import { type ModelEvent, SERVING_TIMINGS, ServedModel, type Serving, type ServingTimings, type StartEngine } from './served-model.js';

export interface ModelPoolOptions {
  /** Each must fit under the ceiling together with the always-loaded models. */
  readonly models: readonly Serving[];
  /** Maximum bytes of all models together. */
  readonly ceiling: number;
  readonly start: StartEngine;
  readonly onEvent: (event: ModelEvent) => void;
  /** Called when the offers may have changed. */
  readonly onChange: () => void;
  readonly timings?: Partial<ServingTimings>;
}

/** A job cannot get the model: `disabled` means that it has failed, `no_room` that it does not fit into memory in time. */
export class ModelUnavailable extends Error {
  constructor(readonly reason: 'not_served' | 'disabled' | 'no_room' | 'suspended' | 'closed') {
    super(`the model is unavailable: ${reason}`);
    this.name = 'ModelUnavailable';
  }
}

/** Right of a job to a loaded model. */
interface Lease {
  readonly model: ServedModel;
  /** Later calls do nothing. */
  release(): void;
}

interface Waiter {
  /** Changes when `replace` replaces the model. */
  model: ServedModel;
  /** Start of the wait, by `performance.now`. */
  readonly since: number;
  readonly grant: (lease: Lease) => void;
  readonly reject: (reason: unknown) => void;
}

export class ModelPool {
  readonly #options: ModelPoolOptions;
  readonly #timings: ServingTimings;
  #modelById: ReadonlyMap<string, ServedModel>;
  /** Removed models whose processes have not ended yet. */
  readonly #leaving = new Set<ServedModel>();
  /** Oldest first. */
  readonly #waiting = new Set<Waiter>();
  #hasStarted = false;
  #isClosed = false;
  #isMemoryShort = false;
  /** True from `suspend` to `resume`: nothing is loaded. */
  #isSuspended = false;
  readonly #memory: ModelMemory;
  #isGranting = false;
  /** Whether something changed while leases were granted. */
  #mustRunAgain = false;
  /** Fires when a waiting job gets priority or reaches the maximum wait. */
  #wakeTimer: NodeJS.Timeout | null = null;

  constructor(options: ModelPoolOptions) {
    this.#options = options;
    this.#timings = { ...SERVING_TIMINGS, ...options.timings };
    this.#modelById = new Map(options.models.map((serving) => [serving.facts.id, this.#create(serving)]));
    this.#memory = new ModelMemory({ served: () => this.#modelById.values(), leaving: this.#leaving }, options.ceiling);
  }

  /** Loads the always-loaded models. An abort closes the pool and throws. Throws the first error if every model is disabled. */
  async start(signal: AbortSignal): Promise<void> {
    const stop = (): void => void this.close();
    signal.addEventListener('abort', stop, { once: true });
    let failure: Error | null = null;
    for (const model of this.#modelById.values()) {
      if (model.keep.kind !== 'always' || this.#isClosed || this.#isSuspended || model.state !== 'cold') continue;
      const error = await model.load();
      failure ??= error;
    }
    signal.removeEventListener('abort', stop);
    this.#hasStarted = true;
    if (this.#isClosed) throw new Error('loading the model was interrupted');
    if (failure !== null && [...this.#modelById.values()].every(({ state }) => state === 'disabled')) throw failure;
  }

  /** Offers for the coordinator: all models that are not disabled and fit into memory, loaded or not. */
  offers(): ModelOffer[] {
    return [...this.#modelById.values()].flatMap((model) => model.offer() ?? []);
  }

  /** Ids of the offered models. */
  ids(): ReadonlySet<string> {
    return new Set(this.offers().map(({ id }) => id));
  }

  /** Maximum concurrent jobs of all models together: the largest slot count of one model. */
  get slots(): number {
    return Math.max(1, ...[...this.#modelById.values()].map(({ serving }) => serving.capacity.slots));
  }

  all(): Iterable<ServedModel> {
    return this.#modelById.values();
  }

  model(id: string): ServedModel | undefined {
    return this.#modelById.get(id);
  }

  /** Bytes of all models in memory. */
  get memoryInUse(): number {
    return this.#memory.inUse;
  }

  /** While memory is short, unused models that no job waits for are unloaded at once, unless always loaded. */
  setMemoryIsShort(isShort: boolean): void {
    this.#isMemoryShort = isShort;
    if (!isShort || this.#isClosed) return;
    for (const model of this.#modelById.values()) if (model.state === 'ready' && model.leases === 0) this.#onIdle(model);
  }

  /** Applies keep-alive settings and a memory ceiling. Returns the models that do not fit, which are unloaded once unused. */
  adjust(keepAliveById: ReadonlyMap<string, KeepAlive>, ceiling: number): readonly ServedModel[] {
    for (const model of this.#modelById.values()) model.keep = keepAliveById.get(model.id) ?? model.keep;
    return this.#setCeiling(ceiling);
  }

  /** Replaces the list of models. Removed and changed models end after their last job. Returns the models that do not fit. */
  replace(servings: readonly Serving[], ceiling: number): readonly ServedModel[] {
    const old = this.#modelById;
    this.#modelById = new Map(
      servings.map((serving) => {
        const known = old.get(serving.facts.id);
        if (known?.isSame(serving) !== true) return [serving.facts.id, this.#create(serving)];
        known.keep = serving.keep;
        return [known.id, known];
      }),
    );
    for (const model of old.values()) if (this.#modelById.get(model.id) !== model) this.#retire(model);
    return this.#setCeiling(ceiling);
  }

  #setCeiling(ceiling: number): readonly ServedModel[] {
    this.#memory.setCeiling(ceiling);
    this.#changed();
    return [...this.#modelById.values()].filter(({ fits }) => !fits);
  }

  /**
   * Unloads all models, always-loaded ones too, and loads none until `resume`. Rejects waiting jobs. No job may use a model.
   *
   * Resolves when the processes of the listed models have ended.
   */
  async suspend(): Promise<void> {
    this.#isSuspended = true;
    for (const waiter of [...this.#waiting]) waiter.reject(new ModelUnavailable('suspended'));
    // Removed models have ended or are ending, because no job uses them.
    await Promise.all([...this.#modelById.values()].map((model) => model.endProcess()));
  }

  /** Allows loading again, and loads the always-loaded models. */
  resume(): void {
    if (!this.#isSuspended) return;
    this.#isSuspended = false;
    this.#settle();
  }

  /** Resolves when the model is loaded. Throws {@link ModelUnavailable}, or the signal's reason. The caller must release the lease. */
  async lease(id: string, signal: AbortSignal): Promise<Lease> {
    signal.throwIfAborted();
    const model = this.#modelById.get(id);
    if (this.#isClosed) throw new ModelUnavailable('closed');
    if (this.#isSuspended) throw new ModelUnavailable('suspended');
    if (model === undefined) throw new ModelUnavailable('not_served');
    let waiter: Waiter | null = null;
    const onAbort = (): void => waiter?.reject(signal.reason);
    try {
      return await new Promise<Lease>((resolve, reject) => {
        const settled =
          <T>(settle: (value: T) => void) =>
          (value: T): void => {
            if (waiter !== null) this.#waiting.delete(waiter);
            settle(value);
          };
        waiter = { model, since: performance.now(), grant: settled(resolve), reject: settled(reject) };
        this.#waiting.add(waiter);
        signal.addEventListener('abort', onAbort, { once: true });
        this.#grantLeases();
      });
    } finally {
      signal.removeEventListener('abort', onAbort);
      // A job that stops waiting may have delayed others.
      this.#grantLeases();
    }
  }

  /** Ends every process. Rejects waiting jobs. */
  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#wakeTimer !== null) clearTimeout(this.#wakeTimer);
    for (const waiter of [...this.#waiting]) waiter.reject(new ModelUnavailable('closed'));
    await Promise.all([...this.#modelById.values(), ...this.#leaving].map((model) => model.close()));
  }

  #create(serving: Serving): ServedModel {
    const { start, onEvent, timings } = this.#options;
    const onChange = (): void => this.#changed();
    return new ServedModel({ serving, start, onEvent, onChange, ...(timings === undefined ? {} : { timings }) });
  }

  /** Ends a removed model after its last job. Jobs that wait for it get the model that now has the id, or are rejected. */
  #retire(model: ServedModel): void {
    this.#leaving.add(model);
    const successor = this.#modelById.get(model.id);
    for (const waiter of [...this.#waiting]) {
      if (waiter.model !== model) continue;
      if (successor === undefined) waiter.reject(new ModelUnavailable('not_served'));
      else waiter.model = successor;
    }
    this.#closeIfUnused(model);
  }

  #closeIfUnused(model: ServedModel): void {
    if (model.leases > 0) return;
    void model.close().then(() => {
      if (this.#leaving.delete(model) && !this.#isClosed) this.#changed();
    });
  }

  #changed(): void {
    this.#options.onChange();
    this.#settle();
  }

  #settle(): void {
    this.#grantLeases();
    for (const model of this.#modelById.values()) {
      if (this.#isClosed) return;
      if (model.state === 'ready' && model.leases === 0) this.#onIdle(model);
    }
  }

  /** Unloads an unused model at once if memory requires it, otherwise after its keep-alive. */
  #onIdle(model: ServedModel): void {
    const isAwaited = [...this.#waiting].some((waiter) => waiter.model === model);
    const mustFreeMemory = this.#isMemoryShort || this.#memory.isExceeded;
    if (!model.fits || (mustFreeMemory && !isAwaited && model.keep.kind !== 'always')) this.#unloadIdle(model);
    else model.startIdleTimer(() => this.#unloadIdle(model));
  }

  /** Grants leases until nothing changes any more. Called after every change. */
  #grantLeases(): void {
    this.#mustRunAgain = true;
    if (this.#isGranting || this.#isClosed) return;
    this.#isGranting = true;
    while (this.#mustRunAgain) {
      this.#mustRunAgain = false;
      this.#grantOnce();
    }
    this.#isGranting = false;
  }

  /** For each waiting job, oldest first: grants or rejects the lease, starts to load the model, or leaves the job waiting. */
  #grantOnce(): void {
    this.#loadAlwaysLoaded();
    const now = performance.now();
    /** Whether an older job with priority waits for memory that models in use occupy. */
    let mustYield = false;
    let nextWakeMs = Number.POSITIVE_INFINITY;
    const older = new Set<ServedModel>();
    for (const waiter of [...this.#waiting]) {
      const { model } = waiter;
      const waited = now - waiter.since;
      switch (model.state) {
        case 'disabled':
          waiter.reject(new ModelUnavailable('disabled'));
          break;
        case 'ready':
          if (!model.fits) waiter.reject(new ModelUnavailable('no_room'));
          else if (!mustYield || model.keep.kind === 'always') this.#grant(waiter);
          break;
        case 'loading':
        case 'unloading':
          break;
        case 'cold': {
          if (!model.fits) {
            waiter.reject(new ModelUnavailable('no_room'));
            break;
          }
          if (mustYield) break;
          if (this.#memory.makeRoomFor(model, older)) {
            void model.load();
            break;
          }
          if (this.#memory.isBeingFreed) break;
          if (waited >= this.#timings.memoryWaitMs) waiter.reject(new ModelUnavailable('no_room'));
          else if (waited >= this.#timings.priorityAfterMs) mustYield = true;
          nextWakeMs = Math.min(nextWakeMs, this.#nextLimitMs(waited) - waited);
          break;
        }
        default:
          model.state satisfies never;
      }
      older.add(model);
    }
    this.#wakeIn(nextWakeMs);
  }

  /** The wait after which a job without memory gets priority or is rejected, whichever is next. */
  #nextLimitMs(waitedMs: number): number {
    const { priorityAfterMs, memoryWaitMs } = this.#timings;
    return waitedMs < priorityAfterMs ? priorityAfterMs : memoryWaitMs;
  }

  /** Loads always-loaded models that are not in memory: new ones, and all after a failure or a suspension. */
  #loadAlwaysLoaded(): void {
    if (!this.#hasStarted || this.#isSuspended) return;
    for (const model of this.#modelById.values()) {
      if (model.state !== 'cold' || model.keep.kind !== 'always' || !model.fits) continue;
      if (this.#memory.makeRoomFor(model, new Set())) void model.load();
    }
  }

  #grant(waiter: Waiter): void {
    const { model } = waiter;
    model.acquire();
    let released = false;
    waiter.grant({
      model,
      release: () => {
        if (released) return;
        released = true;
        model.leases--;
        if (this.#leaving.has(model)) this.#closeIfUnused(model);
        else if (model.leases === 0) this.#onIdle(model);
        this.#grantLeases();
      },
    });
  }

  #unloadIdle(model: ServedModel): void {
    if (model.state === 'ready' && model.leases === 0) void model.unload();
  }

  #wakeIn(ms: number): void {
    if (this.#wakeTimer !== null) clearTimeout(this.#wakeTimer);
    this.#wakeTimer = ms === Number.POSITIVE_INFINITY ? null : setTimeout(() => this.#grantLeases(), ms);
  }
}
