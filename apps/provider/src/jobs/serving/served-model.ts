/**
 * `ServedModel`: a model of a `ModelPool` with its engine process, which restarts after a crash.
 *
 * A failed load, or repeated crashes, disable the model for a time.
 */
import { MAX_IMAGE_TOKENS, type ModelOffer, type VisionOffer } from '@inference/protocol';
import type { Embedding } from '../../engine/embedding.js';
import type { Engine, EngineStatusEvent } from '../../engine/engine.js';
import type { Generation } from '../../engine/generation.js';
import type { EmbeddingRequest, GenerationRequest } from '../../engine/messages.js';
import type { ImageEngine, ImageEngineStatusEvent } from '../../imaging/image-engine.js';
import type { ImageJob } from '../../imaging/image-job.js';
import type { ImageRequest } from '../../imaging/messages.js';
import type { Capacity } from '../../models/capacity.js';
import { type ImageSize, MAX_IMAGES_OF_A_JOB, sizeText } from '../../models/image/image-facts.js';
import { type ModelFacts, modelTypeOf } from '../../models/model-facts.js';
import { maxImagesOf, type VisionFacts } from '../../models/projector.js';
import { idleLimitMs, type KeepAlive, keepAliveText } from './keep-alive.js';

/** Operations of jobs on a loaded model. Each kind of model supports one of these. */
export interface ModelOperations {
  generate(request: GenerationRequest): Generation;
  embed(request: EmbeddingRequest): Embedding;
  generateImages(request: ImageRequest): ImageJob;
}

/** A started engine with its model: for text or embeddings, or for images. */
export type RunningEngine = TextEngine | ImageGenerator;
type TextEngine = Pick<Engine, 'facts' | 'generate' | 'embed' | 'close' | 'pid'>;
type ImageGenerator = Pick<ImageEngine, 'facts' | 'generateImages' | 'close' | 'pid'>;

/** Starts an engine for a model. Rejects with an Error whose message is meant for the Mac's owner. */
export type StartEngine = (
  model: ServedModel,
  onEvent: (event: EngineStatusEvent | ImageEngineStatusEvent) => void,
  signal: AbortSignal,
) => Promise<RunningEngine>;

export type ModelEvent =
  | { readonly type: 'loading'; readonly id: string }
  | { readonly type: 'ready'; readonly id: string; readonly milliseconds: number }
  | { readonly type: 'unloaded'; readonly id: string }
  | { readonly type: 'died'; readonly id: string; readonly reason: string; readonly retryInMs: number }
  | { readonly type: 'disabled'; readonly id: string; readonly reason: string; readonly retryInMs: number }
  | { readonly type: 'output'; readonly id: string; readonly line: string };

export interface Serving {
  readonly facts: ModelFacts;
  readonly capacity: Capacity;
  /** Bytes of memory while loaded. */
  readonly need: number;
  readonly keep: KeepAlive;
  /** SHA-256 of the file; null until computed. */
  readonly fileSha256: () => string | null;
}

interface ServedModelOptions {
  readonly serving: Serving;
  readonly start: StartEngine;
  readonly onEvent: (event: ModelEvent) => void;
  /** Called at every change of state. */
  readonly onChange: () => void;
  readonly timings?: Partial<ServingTimings>;
}

export interface ServingTimings {
  /** First time for which a failing model is disabled; doubles up to `maxDisabledMs`. */
  readonly firstDisabledMs: number;
  readonly maxDisabledMs: number;
  /** Idle limit of all models in place of their keep-alive, except `always`. Null: none. */
  readonly idleMs: number | null;
  /** Maximum wait of a job for memory that other models use. */
  readonly memoryWaitMs: number;
  /** Wait for memory after which a job goes before newer jobs of loaded models. */
  readonly priorityAfterMs: number;
}

export const SERVING_TIMINGS: ServingTimings = {
  firstDisabledMs: 60_000,
  maxDisabledMs: 60 * 60_000,
  idleMs: null,
  memoryWaitMs: 60_000,
  priorityAfterMs: 5000,
};

/** `cold`: not in memory. `disabled`: has failed and is not offered for a time. */
type ModelState = 'cold' | 'loading' | 'ready' | 'unloading' | 'disabled';

/** Assumed disk speed and process start, to estimate the loading time before the first load. */
const BYTES_PER_MS = 1e6;
const PROCESS_START_MS = 1000;
/** Time without a crash after which the next failure disables a model only for `firstDisabledMs` again. */
const STABLE_AFTER_MS = 10 * 60_000;

export class ServedModel implements ModelOperations {
  readonly serving: Serving;
  #keep: KeepAlive;
  /** Whether the model fits in memory together with the always-loaded models. Set by `ModelMemory`. If not, the model is not offered. */
  fits = true;
  readonly #options: ServedModelOptions;
  readonly #timings: ServingTimings;
  #state: ModelState = 'cold';
  #engine: RunningEngine | null = null;
  /** Aborts the load in progress, if any. */
  #starting: AbortController | null = null;
  #loading: Promise<unknown> = Promise.resolve();
  /** Resolves when the process of the last unloading has ended. */
  #unloading: Promise<unknown> = Promise.resolve();
  /** Duration of the last load; null before the first. */
  #loadMs: number | null = null;
  #loadingSince = 0;
  #readySince: number | null = null;
  #nextDisabledMs: number;
  #disabledReason: string | null = null;
  /** Idle timer of a `ready` model, or end of the time of a `disabled` one. */
  #timer: NodeJS.Timeout | null = null;
  #isClosed = false;
  /** Whether the load in progress must end without a loaded model. */
  #shouldUnload = false;
  /** Number of jobs that use the model. `ModelPool` decrements it. */
  leases = 0;
  /** Start of the last use, by `performance.now()`. */
  usedAt = 0;

  constructor(options: ServedModelOptions) {
    this.#options = options;
    this.serving = options.serving;
    this.#keep = options.serving.keep;
    this.#timings = { ...SERVING_TIMINGS, ...options.timings };
    this.#nextDisabledMs = this.#timings.firstDisabledMs;
  }

  get id(): string {
    return this.serving.facts.id;
  }

  get keep(): KeepAlive {
    return this.#keep;
  }

  /** Stops a running idle timer. `ModelPool` starts the next one. */
  set keep(keep: KeepAlive) {
    if (keepAliveText(keep) === keepAliveText(this.#keep)) return;
    this.#keep = keep;
    if (this.#state === 'ready') this.#clearTimer();
  }

  /** Whether `serving` describes the same model with the same capacity. */
  isSame({ facts, capacity, need }: Serving): boolean {
    const { serving } = this;
    return JSON.stringify([facts, capacity, need]) === JSON.stringify([serving.facts, serving.capacity, serving.need]);
  }

  get state(): ModelState {
    return this.#state;
  }

  get isInMemory(): boolean {
    return this.#state === 'loading' || this.#state === 'ready' || this.#state === 'unloading';
  }

  /** Reason for being disabled, for the owner; null otherwise. */
  get reason(): string | null {
    return this.#state === 'disabled' ? this.#disabledReason : null;
  }

  /** Process id of the engine; undefined while it is not running. */
  get pid(): number | undefined {
    return this.#engine?.pid;
  }

  /** Tokens of one sequence: the engine's actual number once loaded. */
  get contextSize(): number {
    const facts = this.#engine?.facts ?? null;
    return facts !== null && 'contextSize' in facts ? facts.contextSize : this.serving.capacity.contextSize;
  }

  /** Name, build and device of the engine. */
  get engineName(): string {
    const facts = this.#engine?.facts ?? null;
    if (facts !== null && 'device' in facts) return `${this.serving.facts.image?.engine ?? 'image engine'} ${facts.device}`;
    return facts?.build ?? 'unknown';
  }

  /** Image sizes that this machine supports; empty for other than image models. */
  get sizes(): readonly ImageSize[] {
    return this.serving.capacity.sizes ?? [];
  }

  /** The offer for the coordinator; null while the model is disabled or does not fit. */
  offer(): ModelOffer | null {
    const { facts, fileSha256 } = this.serving;
    if (this.#state === 'disabled' || !this.fits) return null;
    const sha256 = fileSha256();
    return {
      id: facts.id,
      model_type: modelTypeOf(facts),
      display_name: facts.displayName,
      quantization: facts.quantization,
      context_length: this.contextSize,
      ...(this.#state === 'ready'
        ? { state: 'ready' }
        : { state: this.#state === 'loading' ? 'loading' : 'on_demand', load_ms: this.#expectedLoadMs() }),
      ...(sha256 === null ? {} : { file_sha256: sha256 }),
      ...(facts.thinks === null || facts.embedding !== null ? {} : { thinks: facts.thinks }),
      ...(facts.vision === null ? {} : { vision: this.#visionOffer(facts.vision) }),
      ...(facts.image === null ? {} : { image: { sizes: this.sizes.map(sizeText), max_images: MAX_IMAGES_OF_A_JOB } }),
    };
  }

  /** Like the methods below, throws while the model is not loaded, and for the wrong kind of model. */
  generate(request: GenerationRequest): Generation {
    return this.#textEngine().generate(request);
  }

  embed(request: EmbeddingRequest): Embedding {
    return this.#textEngine().embed(request);
  }

  generateImages(request: ImageRequest): ImageJob {
    const engine = this.#running();
    if (!('generateImages' in engine)) throw new Error(`the model ${this.id} makes no images`);
    return engine.generateImages(request);
  }

  /** Loads a `cold` model. Resolves to null, even if the model was unloaded meanwhile, or to the error of a failed load. */
  load(): Promise<Error | null> {
    const loading = this.#load();
    this.#loading = loading;
    return loading;
  }

  async #load(): Promise<Error | null> {
    const started = performance.now();
    this.#loadingSince = started;
    this.#readySince = null;
    this.#setState('loading');
    this.#emit({ type: 'loading', id: this.id });
    const starting = new AbortController();
    this.#starting = starting;
    try {
      const engine = await this.#options.start(this, (event) => this.#follow(event), starting.signal);
      if (this.#isClosed || this.#shouldUnload) {
        await engine.close();
        this.#setState('cold');
        return null;
      }
      this.#engine = engine;
      this.#becomeReady(performance.now() - started);
      return null;
    } catch (error) {
      const failure = error instanceof Error ? error : new Error('the engine could not start');
      if (this.#shouldUnload) {
        this.#setState('cold');
        return null;
      }
      if (!this.#isClosed) this.#disable(failure.message);
      return failure;
    } finally {
      this.#starting = null;
      this.#shouldUnload = false;
    }
  }

  /** Ends the process of a loaded model. */
  async unload(): Promise<void> {
    this.#clearTimer();
    const engine = this.#engine;
    this.#engine = null;
    this.#setState('unloading');
    const ended = engine?.close();
    this.#unloading = ended ?? Promise.resolve();
    await ended;
    if (this.#state !== 'unloading') return;
    this.#emit({ type: 'unloaded', id: this.id });
    this.#setState('cold');
  }

  /** Ends the process, if any, or waits for its end. No job may use the model. */
  async endProcess(): Promise<void> {
    if (this.#state === 'loading' && this.#starting !== null) {
      this.#shouldUnload = true;
      this.#starting.abort();
      await this.#loading;
    } else if (this.#state === 'ready' || this.#state === 'loading') await this.unload();
    else await this.#unloading;
  }

  /** Starts the idle timer, if none runs: calls `unload` unless a job uses the model before. */
  startIdleTimer(unload: () => void): void {
    const keep = this.#keep;
    const limit = keep.kind === 'always' ? null : (this.#timings.idleMs ?? idleLimitMs(keep));
    if (limit === null || this.#state !== 'ready' || this.#timer !== null) return;
    this.#timer = setTimeout(unload, limit);
    this.#timer.unref();
  }

  acquire(): void {
    this.leases++;
    this.usedAt = performance.now();
    if (this.#state === 'ready') this.#clearTimer();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#clearTimer();
    this.#starting?.abort();
    await this.#loading;
    await this.#unloading;
    await this.#engine?.close();
  }

  #visionOffer({ maxImageTokens }: VisionFacts): VisionOffer {
    const facts = this.#engine?.facts ?? null;
    const measured = facts !== null && 'vision' in facts ? facts.vision?.maxImageTokens : undefined;
    const max = Math.min(MAX_IMAGE_TOKENS, measured ?? maxImageTokens);
    return { max_images: maxImagesOf(this.contextSize, max), max_image_tokens: max };
  }

  #running(): RunningEngine {
    if (this.#engine === null) throw new Error(`the model ${this.id} is not loaded`);
    return this.#engine;
  }

  #textEngine(): TextEngine {
    const engine = this.#running();
    if (!('generate' in engine)) throw new Error(`the model ${this.id} makes only images`);
    return engine;
  }

  #follow(event: EngineStatusEvent | ImageEngineStatusEvent): void {
    switch (event.type) {
      case 'output':
        this.#emit({ type: 'output', id: this.id, line: event.line });
        return;
      case 'ready':
        // `load` reports the first start; at restarts, `#engine` is set.
        if (this.#engine !== null && !this.#isClosed) this.#becomeReady(performance.now() - this.#loadingSince);
        return;
      case 'died':
        if (this.#isClosed || this.#state === 'unloading') return;
        this.#loadingSince = performance.now();
        this.#emit({ type: 'died', id: this.id, reason: event.reason, retryInMs: event.retryInMs });
        this.#setState('loading');
        return;
      case 'given_up':
        if (!this.#isClosed) this.#disable(`the engine process ended again and again: ${event.reason}`);
        return;
      default:
        event satisfies never;
    }
  }

  #becomeReady(milliseconds: number): void {
    this.#loadMs = Math.round(milliseconds);
    this.#readySince = performance.now();
    this.#emit({ type: 'ready', id: this.id, milliseconds: this.#loadMs });
    this.#setState('ready');
  }

  #disable(reason: string): void {
    this.#engine = null;
    this.#disabledReason = reason;
    if (this.#readySince !== null && performance.now() - this.#readySince > STABLE_AFTER_MS)
      this.#nextDisabledMs = this.#timings.firstDisabledMs;
    const retryInMs = this.#nextDisabledMs;
    this.#nextDisabledMs = Math.min(2 * retryInMs, this.#timings.maxDisabledMs);
    this.#clearTimer();
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#setState('cold');
    }, retryInMs);
    this.#timer.unref();
    this.#emit({ type: 'disabled', id: this.id, reason, retryInMs });
    this.#setState('disabled');
  }

  #expectedLoadMs(): number {
    const expected = this.#loadMs ?? PROCESS_START_MS + this.serving.facts.fileBytes / BYTES_PER_MS;
    return Math.min(3_600_000, Math.round(expected));
  }

  #clearTimer(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #emit(event: ModelEvent): void {
    this.#options.onEvent(event);
  }

  #setState(state: ModelState): void {
    if (this.#isClosed || state === this.#state) return;
    this.#state = state;
    this.#options.onChange();
  }
}
