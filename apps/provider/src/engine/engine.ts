/**
 * The engine as the daemon sees it: a child process that is started, watched and started again when it dies. A crash
 * fails the jobs that were running and no others; the model comes back with growing pauses in between.
 */
import { EngineProcess } from './engine-process.js';
import { Generation } from './generation.js';
import type { EngineFacts, EngineSettings, GenerationRequest } from './messages.js';

/** The model could not be loaded. The message is one sentence for the owner. */
export class EngineStartError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'EngineStartError';
  }
}

export type EngineEvent =
  | { readonly type: 'ready'; readonly facts: EngineFacts }
  | { readonly type: 'output'; readonly line: string }
  | { readonly type: 'died'; readonly reason: string; readonly retryInMs: number };

export interface EngineOptions {
  readonly settings: EngineSettings;
  readonly onEvent?: (event: EngineEvent) => void;
  /** Deadline of loading, in milliseconds. Large models take a while from a slow disk. */
  readonly loadTimeoutMs?: number;
  /** First pause before a dead engine is started again; doubles up to a minute. */
  readonly firstRetryMs?: number;
}

const LOAD_TIMEOUT_MS = 10 * 60_000;
const FIRST_RETRY_MS = 500;
const MAX_RETRY_MS = 60_000;
/** An engine that lived this long is started again without a growing pause. */
const STABLE_AFTER_MS = 60_000;

export class Engine {
  readonly #generations = new Map<number, Generation>();
  #process: EngineProcess | null = null;
  #loading: EngineProcess | null = null;
  #facts: EngineFacts | null = null;
  #nextJob = 1;
  #retryMs: number;
  #retryTimer: NodeJS.Timeout | null = null;
  #closed = false;

  private constructor(private readonly options: EngineOptions) {
    this.#retryMs = options.firstRetryMs ?? FIRST_RETRY_MS;
  }

  /** Starts the process and loads the model. Throws {@link EngineStartError}. */
  static async start(options: EngineOptions, signal?: AbortSignal): Promise<Engine> {
    const engine = new Engine(options);
    await engine.#launch(signal);
    return engine;
  }

  /** Null while the engine is down. */
  get facts(): EngineFacts | null {
    return this.#process === null ? null : this.#facts;
  }

  /** Process id, for tests and for the owner's log. */
  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /** Starts a stream. While the engine is down it ends at once with `engine_failed`. */
  generate(request: GenerationRequest): Generation {
    const job = this.#nextJob++;
    const child = this.#process;
    const generation = new Generation(job, (type) => child?.send({ type, job }));
    if (child === null) {
      generation.end({ job, kind: 'engine_failed', message: 'the engine is not running' });
    } else {
      this.#generations.set(job, generation);
      child.send({ type: 'start', job, request });
    }
    return generation;
  }

  /** Ends the process. Running streams end with `engine_failed`. */
  async close(): Promise<void> {
    this.#closed = true;
    if (this.#retryTimer !== null) clearTimeout(this.#retryTimer);
    await this.#loading?.kill();
    await this.#process?.kill();
  }

  async #launch(signal?: AbortSignal): Promise<void> {
    const child = new EngineProcess({
      onOutput: (line) => this.options.onEvent?.({ type: 'output', line }),
      onTick: (tick) => {
        for (const started of tick.started) this.#generations.get(started.job)?.start(started);
        for (let i = 0; i + 2 < tick.pieces.length; i += 3) {
          this.#generations.get(tick.pieces[i] as number)?.push(tick.pieces[i + 2] as string, tick.pieces[i + 1] as number);
        }
        for (const ended of tick.ended) {
          this.#generations.get(ended.job)?.end(ended);
          this.#generations.delete(ended.job);
        }
      },
    });
    this.#loading = child;
    try {
      this.#facts = await child.load(this.options.settings, this.options.loadTimeoutMs ?? LOAD_TIMEOUT_MS, signal);
    } catch (error) {
      await child.kill();
      throw new EngineStartError(error instanceof Error ? error.message : 'the engine could not start');
    } finally {
      this.#loading = null;
    }
    this.#process = child;
    const since = Date.now();
    void child.exited.then((reason) => this.#onExit(child, reason, since));
    this.options.onEvent?.({ type: 'ready', facts: this.#facts });
  }

  #onExit(child: EngineProcess, reason: string, since: number): void {
    if (this.#process !== child) return;
    this.#process = null;
    for (const [job, generation] of this.#generations) generation.end({ job, kind: 'engine_failed', message: reason });
    this.#generations.clear();
    if (this.#closed) return;
    if (Date.now() - since > STABLE_AFTER_MS) this.#retryMs = this.options.firstRetryMs ?? FIRST_RETRY_MS;
    this.#retry(reason);
  }

  #retry(reason: string): void {
    const retryInMs = this.#retryMs;
    this.#retryMs = Math.min(2 * retryInMs, MAX_RETRY_MS);
    this.options.onEvent?.({ type: 'died', reason, retryInMs });
    this.#retryTimer = setTimeout(() => {
      this.#launch().catch((error: unknown) => {
        if (!this.#closed) this.#retry(error instanceof Error ? error.message : 'the engine could not start');
      });
    }, retryInMs);
  }
}
