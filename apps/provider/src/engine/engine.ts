/**
 * The engine as the daemon sees it: a child process that is started, watched and started again when it dies. A crash
 * fails the jobs that were running and no others; the model comes back with growing pauses in between.
 */
import type { Confinement } from '../hardening/confinement.js';
import { Embedding } from './embedding.js';
import { EngineProcess } from './engine-process.js';
import { Generation } from './generation.js';
import type { EmbeddingRequest, EngineFacts, EngineSettings, FromEngine, GenerationRequest, PieceLogprobs } from './messages.js';

type Tick = FromEngine & { readonly type: 'tick' };

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
  | { readonly type: 'died'; readonly reason: string; readonly retryInMs: number }
  /** It died too often and stays down. */
  | { readonly type: 'given_up'; readonly reason: string };

export interface EngineOptions {
  readonly settings: EngineSettings;
  readonly onEvent?: (event: EngineEvent) => void;
  /** Deadline of loading, in milliseconds. Large models take a while from a slow disk. */
  readonly loadTimeoutMs?: number;
  /** First pause before a dead engine is started again; doubles up to a minute. */
  readonly firstRetryMs?: number;
  /** So many deaths within so many milliseconds are the last: it is not started again. Left out: it always is. */
  readonly giveUpAfter?: { readonly deaths: number; readonly withinMs: number };
  /** What keeps the network from its process; left out: nothing does. */
  readonly confinement?: Pick<Confinement, 'wrap'>;
}

const LOAD_TIMEOUT_MS = 10 * 60_000;
const FIRST_RETRY_MS = 500;
const MAX_RETRY_MS = 60_000;
/** An engine that lived this long is started again without a growing pause. */
const STABLE_AFTER_MS = 60_000;

export class Engine {
  readonly #generations = new Map<number, Generation>();
  readonly #embeddings = new Map<number, Embedding>();
  #process: EngineProcess | null = null;
  #loading: EngineProcess | null = null;
  #facts: EngineFacts | null = null;
  #nextJob = 1;
  #retryMs: number;
  /** When it died, in milliseconds. */
  #deaths: number[] = [];
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

  /** Starts the making of vectors, on a model that is for that. While the engine is down it ends at once with `engine_failed`. */
  embed(request: EmbeddingRequest): Embedding {
    const job = this.#nextJob++;
    const child = this.#process;
    const embedding = new Embedding(job, (type) => child?.send({ type, job }));
    if (child === null) {
      embedding.end({ job, kind: 'engine_failed', message: 'the engine is not running' });
    } else {
      this.#embeddings.set(job, embedding);
      child.send({ type: 'embed', job, request });
    }
    return embedding;
  }

  /** Ends the process. Running streams end with `engine_failed`. */
  async close(): Promise<void> {
    this.#closed = true;
    if (this.#retryTimer !== null) clearTimeout(this.#retryTimer);
    await this.#loading?.kill();
    await this.#process?.kill();
  }

  async #launch(signal?: AbortSignal): Promise<void> {
    const child = new EngineProcess(
      {
        onOutput: (line) => this.options.onEvent?.({ type: 'output', line }),
        onTick: (tick) => {
          // Whoever waits for another stream's end is served by an engine at work as well.
          for (const generation of this.#generations.values()) generation.engineWorked();
          for (const started of tick.started) this.#generations.get(started.job)?.start(started);
          this.#deliver(tick);
          for (const ended of tick.ended) {
            this.#generations.get(ended.job)?.end(ended);
            this.#generations.delete(ended.job);
          }
        },
        onEmbedding: (news) => {
          if (news.type === 'embedded') {
            this.#embeddings.get(news.job)?.push(news.vector, news.tokens);
            return;
          }
          this.#embeddings.get(news.ended.job)?.end(news.ended);
          this.#embeddings.delete(news.ended.job);
        },
      },
      this.options.confinement,
    );
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

  #deliver({ pieces, logprobs }: Tick): void {
    const wanted = new Map<number, PieceLogprobs[]>();
    for (const each of logprobs) wanted.set(each.job, [...(wanted.get(each.job) ?? []), each]);
    for (let i = 0; i + 2 < pieces.length; i += 3) {
      const [job, tokens, text] = [pieces[i] as number, pieces[i + 1] as number, pieces[i + 2] as string];
      const own = wanted.get(job)?.shift();
      this.#generations.get(job)?.push(own === undefined ? { text, tokens } : { text, tokens, logprobs: own.logprobs });
    }
  }

  #onExit(child: EngineProcess, reason: string, since: number): void {
    if (this.#process !== child) return;
    this.#process = null;
    for (const [job, generation] of this.#generations) generation.end({ job, kind: 'engine_failed', message: reason });
    for (const [job, embedding] of this.#embeddings) embedding.end({ job, kind: 'engine_failed', message: reason });
    this.#generations.clear();
    this.#embeddings.clear();
    if (this.#closed) return;
    if (Date.now() - since > STABLE_AFTER_MS) this.#retryMs = this.options.firstRetryMs ?? FIRST_RETRY_MS;
    this.#retry(reason);
  }

  #retry(reason: string): void {
    const { giveUpAfter, onEvent } = this.options;
    if (giveUpAfter !== undefined) {
      const now = performance.now();
      this.#deaths = [...this.#deaths, now].filter((death) => now - death < giveUpAfter.withinMs);
      if (this.#deaths.length >= giveUpAfter.deaths) {
        this.#closed = true;
        onEvent?.({ type: 'given_up', reason });
        return;
      }
    }
    const retryInMs = this.#retryMs;
    this.#retryMs = Math.min(2 * retryInMs, MAX_RETRY_MS);
    onEvent?.({ type: 'died', reason, retryInMs });
    this.#retryTimer = setTimeout(() => {
      this.#launch().catch((error: unknown) => {
        if (!this.#closed) this.#retry(error instanceof Error ? error.message : 'the engine could not start');
      });
    }, retryInMs);
  }
}
