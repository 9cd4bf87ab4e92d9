/**
 * `ModelPool`: the served models under one memory ceiling. Jobs lease models; the pool loads and unloads models as needed.
 *
 * Jobs of loaded models go first, until another job has waited `priorityAfterMs`. A model in use is never unloaded, so a lowered
 * ceiling takes effect once models are unused.
 */
import type { ModelOffer } from '@inference/protocol';
import type { KeepAlive } from './keep-alive.js';
import { ModelMemory } from './model-memory.js';
import { type ModelEvent, SERVING_TIMINGS, ServedModel, type Serving, type ServingTimings, type StartEngine } from './served-model.js';

export interface ModelPoolOptions {
  /** Each must fit under the ceiling together with all always-loaded models. */
  readonly models: readonly Serving[];
  /** Maximum bytes of all models together. */
  readonly ceiling: number;
  readonly start: StartEngine;
  readonly onEvent: (event: ModelEvent) => void;
  /** Called when the offers change. */
  readonly onChange: () => void;
  readonly timings?: Partial<ServingTimings>;
}

/** The model is not served, has failed, or does not fit into memory; or the pool is suspended or closed. */
export class ModelUnavailable extends Error {
  constructor(readonly reason: 'not_served' | 'disabled' | 'no_room' | 'suspended' | 'closed') {
    super(`the model is unavailable: ${reason}`);
    this.name = 'ModelUnavailable';
  }
}

/** Right of a job to a loaded model. */
interface Lease {
  readonly model: ServedModel;
  /** Idempotent. */
  release(): void;
}

interface Waiter {
  /** Changes when `replace` replaces the model. */
  model: ServedModel;
  /** Start of the wait, by `performance.now`. */
  readonly since: number;
  readonly grant: (lease: Lease) => void;
  readonly refuse: (reason: unknown) => void;
}

export class ModelPool {
  readonly #options: ModelPoolOptions;
  readonly #timings: ServingTimings;
  #models: ReadonlyMap<string, ServedModel>;
  /** Removed models that have not ended yet. */
  readonly #leaving = new Set<ServedModel>();
  readonly #waiting = new Set<Waiter>();
  #hasStarted = false;
  #isClosed = false;
  #isMemoryShort = false;
  /** Whether loading is suspended between `suspend` and `resume`. */
  #isSuspended = false;
  readonly #memory: ModelMemory;
  #isGranting = false;
  /** Whether something changed while leases were granted. */
  #mustRunAgain = false;
  /** Grants leases when a waiting job gets priority or reaches the maximum wait. */
  #wakeTimer: NodeJS.Timeout | null = null;

  constructor(options: ModelPoolOptions) {
    this.#options = options;
    this.#timings = { ...SERVING_TIMINGS, ...options.timings };
    this.#models = new Map(options.models.map((serving) => [serving.facts.id, this.#create(serving)]));
    this.#memory = new ModelMemory({ served: () => this.#models.values(), leaving: this.#leaving }, options.ceiling);
  }

  /** Loads the always-loaded models. Throws when aborted, or the first error if every model is disabled. */
  async start(signal: AbortSignal): Promise<void> {
    const stop = (): void => void this.close();
    signal.addEventListener('abort', stop, { once: true });
    let failure: Error | null = null;
    for (const model of this.#models.values()) {
      if (model.keep.kind !== 'always' || this.#isClosed || this.#isSuspended || model.state !== 'cold') continue;
      const error = await model.load();
      failure ??= error;
    }
    signal.removeEventListener('abort', stop);
    this.#hasStarted = true;
    if (this.#isClosed) throw new Error('loading the model was interrupted');
    if (failure !== null && [...this.#models.values()].every(({ state }) => state === 'disabled')) throw failure;
  }

  /** Offers for the coordinator: all available models, loaded or not. */
  offers(): ModelOffer[] {
    return [...this.#models.values()].flatMap((model) => model.offer() ?? []);
  }

  /** Ids of the available models. */
  ids(): ReadonlySet<string> {
    return new Set(this.offers().map(({ id }) => id));
  }

  /** Maximum concurrent jobs of all models: the largest slot count of a model. */
  get slots(): number {
    return Math.max(1, ...[...this.#models.values()].map(({ serving }) => serving.capacity.slots));
  }

  all(): Iterable<ServedModel> {
    return this.#models.values();
  }

  model(id: string): ServedModel | undefined {
    return this.#models.get(id);
  }

  /** Bytes of all models in memory. */
  get memoryInUse(): number {
    return this.#memory.inUse;
  }

  /** While memory is short, unused models are unloaded at once, unless always loaded. */
  setMemoryIsShort(isShort: boolean): void {
    this.#isMemoryShort = isShort;
    if (!isShort || this.#isClosed) return;
    for (const model of this.#models.values()) if (model.state === 'ready' && model.leases === 0) this.#onIdle(model);
  }

  /** Applies keep-alive settings (by id) and a memory ceiling. Returns models that no longer fit, which are unloaded once unused. */
  adjust(keepAlives: ReadonlyMap<string, KeepAlive>, ceiling: number): readonly ServedModel[] {
    for (const model of this.#models.values()) model.keep = keepAlives.get(model.id) ?? model.keep;
    return this.#fitInto(ceiling);
  }

  /** Replaces the list of models; changed models end after their last job. Returns the models that do not fit. */
  replace(servings: readonly Serving[], ceiling: number): readonly ServedModel[] {
    const old = this.#models;
    this.#models = new Map(
      servings.map((serving) => {
        const known = old.get(serving.facts.id);
        if (known?.isSame(serving) !== true) return [serving.facts.id, this.#create(serving)];
        known.keep = serving.keep;
        return [known.id, known];
      }),
    );
    for (const model of old.values()) if (this.#models.get(model.id) !== model) this.#retire(model);
    return this.#fitInto(ceiling);
  }

  /** Returns the models that do not fit. */
  #fitInto(ceiling: number): readonly ServedModel[] {
    this.#memory.setCeiling(ceiling);
    this.#changed();
    return [...this.#models.values()].filter(({ fits }) => !fits);
  }

  /**
   * Unloads all models until `resume`, including always-loaded models, and refuses waiting jobs.
   *
   * Resolves when the engine processes have ended.
   */
  async suspend(): Promise<void> {
    this.#isSuspended = true;
    for (const waiter of [...this.#waiting]) waiter.refuse(new ModelUnavailable('suspended'));
    // Removed models end with their last job, which callers wait for.
    await Promise.all([...this.#models.values()].map((model) => model.endProcess()));
  }

  /** Allows loading again, and loads the always-loaded models. */
  resume(): void {
    if (!this.#isSuspended) return;
    this.#isSuspended = false;
    this.#settle();
  }

  /** Waits until the model is loaded. Throws {@link ModelUnavailable}, or the signal's reason. The caller releases the lease. */
  async lease(id: string, signal: AbortSignal): Promise<Lease> {
    signal.throwIfAborted();
    const model = this.#models.get(id);
    if (this.#isClosed) throw new ModelUnavailable('closed');
    if (this.#isSuspended) throw new ModelUnavailable('suspended');
    if (model === undefined) throw new ModelUnavailable('not_served');
    let waiter: Waiter | null = null;
    const onAbort = (): void => waiter?.refuse(signal.reason);
    try {
      return await new Promise<Lease>((resolve, reject) => {
        const settled =
          <T>(settle: (value: T) => void) =>
          (value: T): void => {
            if (waiter !== null) this.#waiting.delete(waiter);
            settle(value);
          };
        waiter = { model, since: performance.now(), grant: settled(resolve), refuse: settled(reject) };
        this.#waiting.add(waiter);
        signal.addEventListener('abort', onAbort, { once: true });
        this.#grantLeases();
      });
    } finally {
      signal.removeEventListener('abort', onAbort);
      // A cancelled request may have delayed others.
      this.#grantLeases();
    }
  }

  /** Ends every process. Waiting jobs are refused. */
  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#wakeTimer !== null) clearTimeout(this.#wakeTimer);
    for (const waiter of [...this.#waiting]) waiter.refuse(new ModelUnavailable('closed'));
    await Promise.all([...this.#models.values(), ...this.#leaving].map((model) => model.close()));
  }

  #create(serving: Serving): ServedModel {
    const { start, onEvent, timings } = this.#options;
    const onChange = (): void => this.#changed();
    return new ServedModel({ serving, start, onEvent, onChange, ...(timings === undefined ? {} : { timings }) });
  }

  /** Ends a removed model after its last job. Waiting jobs get the model that now has the id, or are refused. */
  #retire(model: ServedModel): void {
    this.#leaving.add(model);
    const successor = this.#models.get(model.id);
    for (const waiter of [...this.#waiting]) {
      if (waiter.model !== model) continue;
      if (successor === undefined) waiter.refuse(new ModelUnavailable('not_served'));
      else waiter.model = successor;
    }
    this.#closeIfUnused(model);
  }

  /** Closes a removed model after its last job. */
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

  /** Grants leases and unloads idle models after a change. */
  #settle(): void {
    this.#grantLeases();
    for (const model of this.#models.values()) {
      if (this.#isClosed) return;
      if (model.state === 'ready' && model.leases === 0) this.#onIdle(model);
    }
  }

  /** Unloads an unused model at once if memory requires, otherwise after the keep-alive. */
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

  /** Looks at each waiting job once, oldest first: grants, refuses, loads the model, or leaves the job waiting. */
  #grantOnce(): void {
    this.#loadAlwaysLoaded();
    const now = performance.now();
    /** Whether an older job waits for memory that models in use occupy. */
    let isDeferred = false;
    let nextWakeMs = Number.POSITIVE_INFINITY;
    const older = new Set<ServedModel>();
    for (const waiter of [...this.#waiting]) {
      const { model } = waiter;
      const waited = now - waiter.since;
      switch (model.state) {
        case 'disabled':
          waiter.refuse(new ModelUnavailable('disabled'));
          break;
        case 'ready':
          if (!model.fits) waiter.refuse(new ModelUnavailable('no_room'));
          else if (!isDeferred || model.keep.kind === 'always') this.#grant(waiter);
          break;
        case 'loading':
        case 'unloading':
          break;
        case 'cold': {
          if (!model.fits) {
            waiter.refuse(new ModelUnavailable('no_room'));
            break;
          }
          if (isDeferred) break;
          if (this.#memory.makeRoomFor(model, older)) {
            void model.load();
            break;
          }
          if (this.#memory.isBeingFreed) break;
          if (waited >= this.#timings.memoryWaitMs) waiter.refuse(new ModelUnavailable('no_room'));
          else if (waited >= this.#timings.priorityAfterMs) isDeferred = true;
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

  /** The wait at which a job without memory next gets priority or is refused. */
  #nextLimitMs(waitedMs: number): number {
    const { priorityAfterMs, memoryWaitMs } = this.#timings;
    return waitedMs < priorityAfterMs ? priorityAfterMs : memoryWaitMs;
  }

  /** Loads always-loaded models that are not in memory: new ones, and after a failure or a suspension. */
  #loadAlwaysLoaded(): void {
    if (!this.#hasStarted || this.#isSuspended) return;
    for (const model of this.#models.values()) {
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
