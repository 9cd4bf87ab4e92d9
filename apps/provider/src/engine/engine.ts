/** `Engine`: the daemon's client of one engine process (llama.cpp). A crash fails the running jobs; restarts wait for a backoff. */
import { createRequire } from 'node:module';
import type { ProcessKind } from '../model-process/model-process.js';
import { type ProcessStatusEvent, SupervisedProcess, type SupervisionOptions } from '../model-process/supervised-process.js';
import { Embedding } from './embedding.js';
import { Generation } from './generation.js';
import type {
  EmbeddingRequest,
  EngineEvent,
  EngineFacts,
  EngineRequest,
  EngineSettings,
  GenerationRequest,
  PieceLogprobs,
} from './messages.js';

type Tick = EngineEvent & { readonly type: 'tick' };

export type EngineStatusEvent = ProcessStatusEvent | { readonly type: 'ready'; readonly facts: EngineFacts };

export interface EngineOptions extends SupervisionOptions<EngineSettings> {
  readonly onEvent?: (event: EngineStatusEvent) => void;
}

const require = createRequire(import.meta.url);

const TEXT_KIND: ProcessKind = {
  name: 'engine',
  // Resolved through package.json, so the entry is found from the sources (tests) and from the build.
  entry: require.resolve('#engine-process'),
  // The process's JavaScript thread never blocks while the model decodes. Silence means a hang.
  silenceLimitMs: 30_000,
  // A single thread preserves the order of a batch and its samplings (native.ts).
  env: { UV_THREADPOOL_SIZE: '1' },
};

const VISION_KIND: ProcessKind = {
  name: 'vision engine',
  entry: require.resolve('#vision-process'),
  silenceLimitMs: 30_000,
  // JSON, the default, cannot carry the bytes of images.
  serialization: 'advanced',
  // One thread decodes batches, the others read image files.
  env: { UV_THREADPOOL_SIZE: '3' },
};

export class Engine {
  readonly #generations = new Map<number, Generation>();
  readonly #embeddings = new Map<number, Embedding>();
  readonly #process: SupervisedProcess<EngineSettings, EngineFacts, EngineRequest, EngineEvent>;
  #nextJob = 1;

  private constructor({ onEvent = () => {}, ...options }: EngineOptions) {
    const kind = options.settings.type === 'vision' ? VISION_KIND : TEXT_KIND;
    this.#process = new SupervisedProcess(kind, options, {
      onMessage: (message) => this.#receive(message),
      onReady: (facts) => onEvent({ type: 'ready', facts }),
      onExit: (reason) => this.#failAll(reason),
      onEvent,
    });
  }

  /** Starts the process and loads the model. Throws {@link EngineStartError}. */
  static async start(options: EngineOptions, signal?: AbortSignal): Promise<Engine> {
    const engine = new Engine(options);
    await engine.#process.start(signal);
    return engine;
  }

  /** Null while the engine is down. */
  get facts(): EngineFacts | null {
    return this.#process.facts;
  }

  /** Process id, for tests and for the owner's log. */
  get pid(): number | undefined {
    return this.#process.current?.pid;
  }

  /** Starts a generation. While the engine is down, the generation ends at once with `engine_failed`. */
  generate(request: GenerationRequest): Generation {
    const job = this.#nextJob++;
    const child = this.#process.current;
    const generation = new Generation(job, (type) => child?.send({ type, job }));
    if (child === null) {
      generation.end({ job, kind: 'engine_failed', message: 'the engine is not running' });
    } else {
      this.#generations.set(job, generation);
      child.send({ type: 'start', job, request });
    }
    return generation;
  }

  /** Starts an embedding request on an embedding model. While the engine is down, the request ends at once with `engine_failed`. */
  embed(request: EmbeddingRequest): Embedding {
    const job = this.#nextJob++;
    const child = this.#process.current;
    const embedding = new Embedding(job, (type) => child?.send({ type, job }));
    if (child === null) {
      embedding.end({ job, kind: 'engine_failed', message: 'the engine is not running' });
    } else {
      this.#embeddings.set(job, embedding);
      child.send({ type: 'embed', job, request });
    }
    return embedding;
  }

  /** Ends the process. Running jobs end with `engine_failed`. */
  async close(): Promise<void> {
    await this.#process.close();
  }

  #receive(message: EngineEvent): void {
    switch (message.type) {
      case 'tick':
        // Every tick is progress, also for streams that wait for a free sequence.
        for (const generation of this.#generations.values()) generation.engineWorked();
        for (const started of message.started) this.#generations.get(started.job)?.start(started);
        this.#deliver(message);
        for (const ended of message.ended) {
          this.#generations.get(ended.job)?.end(ended);
          this.#generations.delete(ended.job);
        }
        return;
      case 'embedded':
        this.#embeddings.get(message.job)?.push(message.vector, message.tokens);
        return;
      case 'embedding_ended':
        this.#embeddings.get(message.ended.job)?.end(message.ended);
        this.#embeddings.delete(message.ended.job);
        return;
      default:
        message satisfies never;
    }
  }

  #deliver({ pieces, logprobs }: Tick): void {
    const byJob = new Map<number, PieceLogprobs[]>();
    for (const each of logprobs) byJob.set(each.job, [...(byJob.get(each.job) ?? []), each]);
    for (let i = 0; i + 2 < pieces.length; i += 3) {
      const [job, tokens, text] = [pieces[i] as number, pieces[i + 1] as number, pieces[i + 2] as string];
      const own = byJob.get(job)?.shift();
      this.#generations.get(job)?.push(own === undefined ? { text, tokens } : { text, tokens, logprobs: own.logprobs });
    }
  }

  #failAll(reason: string): void {
    for (const [job, generation] of this.#generations) generation.end({ job, kind: 'engine_failed', message: reason });
    for (const [job, embedding] of this.#embeddings) embedding.end({ job, kind: 'engine_failed', message: reason });
    this.#generations.clear();
    this.#embeddings.clear();
  }
}
