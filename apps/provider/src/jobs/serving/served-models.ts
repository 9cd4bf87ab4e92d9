/**
 * The models of one machine and the memory they share. A job takes a lease on its model, which loads it when it is not in
 * memory and keeps it there; models that nobody uses make room for those that are asked for. The memory that is in use never
 * passes the ceiling, and jobs are served in their order, so that no model is kept out by the traffic of another. Which models they
 * are may change at any time: one that leaves ends its jobs first, and counts until its memory is free.
 */
import type { ModelOffer } from '@inference/protocol';
import type { Keep } from './keep-alive.js';
import { type ModelEvent, SERVING_TIMINGS, ServedModel, type Serving, type ServingTimings, type StartEngine } from './served-model.js';

export interface ServedModelsOptions {
  /** Each fits under the ceiling alone, and beside those that always stay. */
  readonly models: readonly Serving[];
  /** Bytes that all models may take together. */
  readonly ceiling: number;
  readonly start: StartEngine;
  readonly onEvent: (event: ModelEvent) => void;
  /** What is offered has changed. */
  readonly onChange: () => void;
  readonly timings?: Partial<ServingTimings>;
}

/** The model cannot be had now: it is not served, it fails, or others use the memory that it needs. */
export class ModelUnavailable extends Error {
  constructor(readonly reason: 'not_served' | 'set_aside' | 'no_room' | 'resting' | 'closed') {
    super(`the model cannot be had: ${reason}`);
    this.name = 'ModelUnavailable';
  }
}

/** A job's hold on a loaded model. */
export interface Lease {
  readonly model: ServedModel;
  /** Once; further calls do nothing. */
  release(): void;
}

interface Waiter {
  model: ServedModel;
  readonly since: number;
  readonly grant: (lease: Lease) => void;
  readonly refuse: (reason: unknown) => void;
}

export class ServedModels {
  readonly #options: ServedModelsOptions;
  readonly #timings: ServingTimings;
  #models: ReadonlyMap<string, ServedModel>;
  /** They have no new jobs, and are not ended yet. */
  readonly #leaving = new Set<ServedModel>();
  readonly #waiting = new Set<Waiter>();
  #started = false;
  #closed = false;
  #memoryIsShort = false;
  #resting = false;
  #ceiling: number;
  #pumping = false;
  #again = false;
  #wake: NodeJS.Timeout | null = null;

  constructor(options: ServedModelsOptions) {
    this.#options = options;
    this.#ceiling = options.ceiling;
    this.#timings = { ...SERVING_TIMINGS, ...options.timings };
    this.#models = new Map(options.models.map((serving) => [serving.facts.id, this.#made(serving)]));
  }

  /** Loads those that always stay. Throws the first error when none of them could be loaded, and no other model is there. */
  async start(signal: AbortSignal): Promise<void> {
    const stop = (): void => void this.close();
    signal.addEventListener('abort', stop, { once: true });
    let failure: Error | null = null;
    for (const model of this.#models.values()) {
      if (model.keep.kind !== 'always' || this.#closed || this.#resting || model.state !== 'cold') continue;
      const error = await model.load();
      failure ??= error;
    }
    signal.removeEventListener('abort', stop);
    this.#started = true;
    if (this.#closed) throw new Error('loading the model was interrupted');
    if (failure !== null && [...this.#models.values()].every(({ state }) => state === 'aside')) throw failure;
  }

  /** What the coordinator is told: all that can be had, loaded or not. */
  offers(): ModelOffer[] {
    return [...this.#models.values()].flatMap((model) => model.offer() ?? []);
  }

  /** Ids of the models that can be had. */
  ids(): ReadonlySet<string> {
    return new Set(this.offers().map(({ id }) => id));
  }

  /** Jobs that are run at once, of all models together: as many as the model with the most streams takes. */
  get slots(): number {
    return Math.max(1, ...[...this.#models.values()].map(({ serving }) => serving.capacity.slots));
  }

  all(): Iterable<ServedModel> {
    return this.#models.values();
  }

  model(id: string): ServedModel | undefined {
    return this.#models.get(id);
  }

  /** Bytes that the models in memory take. */
  get memoryInUse(): number {
    let bytes = 0;
    for (const model of this.#models.values()) if (model.isInMemory) bytes += model.serving.need;
    for (const model of this.#leaving) if (model.isInMemory) bytes += model.serving.need;
    return bytes;
  }

  /** While the machine is short of memory, a model that nobody uses leaves at once; one that always stays does stay. */
  setMemoryIsShort(isShort: boolean): void {
    this.#memoryIsShort = isShort;
    if (!isShort || this.#closed) return;
    for (const model of this.#models.values()) if (model.state === 'ready' && model.leases === 0) this.#isIdle(model);
  }

  /**
   * From now on models stay for other times (by id), and take no more bytes together than this. What does not fit any more leaves when
   * nobody uses it, and is not offered; those are given back.
   */
  adjust(keeps: ReadonlyMap<string, Keep>, ceiling: number): readonly ServedModel[] {
    for (const model of this.#models.values()) model.keep = keeps.get(model.id) ?? model.keep;
    return this.#fitInto(ceiling);
  }

  /**
   * Serves these from now on, planned for this ceiling. Who is served just so already goes on; others end when their last job has, and
   * who waits for one of them waits for what takes its place, or is refused. Gives back what does not fit.
   */
  replace(servings: readonly Serving[], ceiling: number): readonly ServedModel[] {
    const old = this.#models;
    this.#models = new Map(
      servings.map((serving) => {
        const known = old.get(serving.facts.id);
        if (known?.isSame(serving) !== true) return [serving.facts.id, this.#made(serving)];
        known.keep = serving.keep;
        return [known.id, known];
      }),
    );
    for (const model of old.values()) if (this.#models.get(model.id) !== model) this.#retire(model);
    return this.#fitInto(ceiling);
  }

  /** Those that do not. */
  #fitInto(ceiling: number): readonly ServedModel[] {
    this.#ceiling = ceiling;
    const models = [...this.#models.values()];
    let left = ceiling;
    for (const model of models) {
      if (model.keep.kind !== 'always') continue;
      model.fits = model.serving.need <= left;
      if (model.fits) left -= model.serving.need;
    }
    for (const model of models) if (model.keep.kind !== 'always') model.fits = model.serving.need <= left;
    this.#changed();
    return models.filter(({ fits }) => !fits);
  }

  /**
   * All models leave memory, those that always stay as well, and none comes back before `resume`. Resolves when their processes have
   * ended. Those who wait for one are refused.
   */
  async rest(): Promise<void> {
    this.#resting = true;
    for (const waiter of [...this.#waiting]) waiter.refuse(new ModelUnavailable('resting'));
    // Those that leave end with their last job, which is waited for before anything rests.
    await Promise.all([...this.#models.values()].map((model) => model.rest()));
  }

  /** Models may be loaded again; those that always stay are. */
  resume(): void {
    if (!this.#resting) return;
    this.#resting = false;
    this.#settle();
  }

  /** Waits until the model is loaded. Throws {@link ModelUnavailable}, or the signal's reason. Whoever gets a lease releases it. */
  async lease(id: string, signal: AbortSignal): Promise<Lease> {
    signal.throwIfAborted();
    const model = this.#models.get(id);
    if (this.#closed) throw new ModelUnavailable('closed');
    if (this.#resting) throw new ModelUnavailable('resting');
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
        this.#pump();
      });
    } finally {
      signal.removeEventListener('abort', onAbort);
      // One who gave up may have held back others.
      this.#pump();
    }
  }

  /** Ends every process. Those who wait are refused. */
  async close(): Promise<void> {
    this.#closed = true;
    if (this.#wake !== null) clearTimeout(this.#wake);
    for (const waiter of [...this.#waiting]) waiter.refuse(new ModelUnavailable('closed'));
    await Promise.all([...this.#models.values(), ...this.#leaving].map((model) => model.close()));
  }

  #made(serving: Serving): ServedModel {
    const { start, onEvent, timings } = this.#options;
    const onChange = (): void => this.#changed();
    return new ServedModel({ serving, start, onEvent, onChange, ...(timings === undefined ? {} : { timings }) });
  }

  #retire(model: ServedModel): void {
    this.#leaving.add(model);
    const successor = this.#models.get(model.id);
    for (const waiter of [...this.#waiting]) {
      if (waiter.model !== model) continue;
      if (successor === undefined) waiter.refuse(new ModelUnavailable('not_served'));
      else waiter.model = successor;
    }
    this.#endUnused(model);
  }

  /** Ends a leaving model once no job uses it. */
  #endUnused(model: ServedModel): void {
    if (model.leases > 0) return;
    void model.close().then(() => {
      if (this.#leaving.delete(model) && !this.#closed) this.#changed();
    });
  }

  #changed(): void {
    this.#options.onChange();
    this.#settle();
  }

  #settle(): void {
    this.#pump();
    for (const model of this.#models.values()) {
      if (this.#closed) return;
      if (model.state === 'ready' && model.leases === 0) this.#isIdle(model);
    }
  }

  #isIdle(model: ServedModel): void {
    const isAwaited = [...this.#waiting].some((waiter) => waiter.model === model);
    const isTooMuch = this.#memoryIsShort || this.memoryInUse > this.#ceiling;
    if (!model.fits || (isTooMuch && !isAwaited && model.keep.kind !== 'always')) this.#unloadIdle(model);
    else model.isIdle(() => this.#unloadIdle(model));
  }

  /** Gives out what can be given now, in the order of the waiting. Every change leads here. */
  #pump(): void {
    this.#again = true;
    if (this.#pumping || this.#closed) return;
    this.#pumping = true;
    while (this.#again) {
      this.#again = false;
      this.#pumpOnce();
    }
    this.#pumping = false;
  }

  #pumpOnce(): void {
    this.#loadWhatStays();
    const now = performance.now();
    /** Somebody older waits for the room that the models in use take. */
    let heldBack = false;
    let nextLook = Number.POSITIVE_INFINITY;
    const older = new Set<ServedModel>();
    for (const waiter of [...this.#waiting]) {
      const { model } = waiter;
      const waited = now - waiter.since;
      switch (model.state) {
        case 'aside':
          waiter.refuse(new ModelUnavailable('set_aside'));
          break;
        case 'ready':
          if (!model.fits) waiter.refuse(new ModelUnavailable('no_room'));
          else if (!heldBack || model.keep.kind === 'always') this.#grant(waiter);
          break;
        case 'loading':
        case 'unloading':
          break;
        case 'cold': {
          if (!model.fits) {
            waiter.refuse(new ModelUnavailable('no_room'));
            break;
          }
          if (heldBack) break;
          if (this.#makeRoom(model, older)) {
            void model.load();
            break;
          }
          if (this.#isSomeoneGoing()) break;
          if (waited >= this.#timings.roomMs) waiter.refuse(new ModelUnavailable('no_room'));
          else if (waited >= this.#timings.patienceMs) heldBack = true;
          nextLook = Math.min(nextLook, (waited < this.#timings.patienceMs ? this.#timings.patienceMs : this.#timings.roomMs) - waited);
          break;
        }
        default:
          model.state satisfies never;
      }
      older.add(model);
    }
    this.#lookAgainIn(nextLook);
  }

  /** What always stays is cold when it has just come, when its time aside is over, and after a rest. */
  #loadWhatStays(): void {
    if (!this.#started || this.#resting) return;
    for (const model of this.#models.values()) {
      if (model.state !== 'cold' || model.keep.kind !== 'always' || !model.fits) continue;
      if (this.#makeRoom(model, new Set())) void model.load();
    }
  }

  /** Memory becomes free in a moment, whatever jobs do. */
  #isSomeoneGoing(): boolean {
    return [...this.#models.values()].some(({ state }) => state === 'unloading') || [...this.#leaving].some(({ leases }) => leases === 0);
  }

  /**
   * Whether the model fits now. Where it does not, models that nobody uses begin to leave, the longest unused first; not those
   * that somebody `older` waits for.
   */
  #makeRoom(model: ServedModel, older: ReadonlySet<ServedModel>): boolean {
    let missing = this.memoryInUse + model.serving.need - this.#ceiling;
    if (missing <= 0) return true;
    const idle = [...this.#models.values()]
      .filter((other) => other.state === 'ready' && other.leases === 0 && other.keep.kind !== 'always' && !older.has(other))
      .sort((a, b) => a.usedAt - b.usedAt);
    // What leaves already counts as in use until it is gone.
    for (const other of this.#models.values()) if (other.state === 'unloading') missing -= other.serving.need;
    for (const other of this.#leaving) if (other.isInMemory) missing -= other.serving.need;
    const leaving: ServedModel[] = [];
    for (const other of idle) {
      if (missing <= 0) break;
      leaving.push(other);
      missing -= other.serving.need;
    }
    // Nobody is sent away in vain.
    if (missing <= 0) for (const other of leaving) void other.unload();
    return false;
  }

  #grant(waiter: Waiter): void {
    const { model } = waiter;
    model.took();
    let released = false;
    waiter.grant({
      model,
      release: () => {
        if (released) return;
        released = true;
        model.leases--;
        if (this.#leaving.has(model)) this.#endUnused(model);
        else if (model.leases === 0) this.#isIdle(model);
        this.#pump();
      },
    });
  }

  #unloadIdle(model: ServedModel): void {
    if (model.state === 'ready' && model.leases === 0) void model.unload();
  }

  #lookAgainIn(ms: number): void {
    if (this.#wake !== null) clearTimeout(this.#wake);
    this.#wake = ms === Number.POSITIVE_INFINITY ? null : setTimeout(() => this.#pump(), ms);
  }
}
