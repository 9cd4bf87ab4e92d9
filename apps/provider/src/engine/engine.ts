/**
 * `Engine`: the daemon's client of one engine process, which runs one model with llama.cpp.
 *
 * If the process crashes, its running jobs end with `engine_failed`, and the process is restarted after a pause.
 */
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
  // The built file, even if tests run the sources.
  entry: require.resolve('#engine-process'),
  // Batches are decoded outside the JavaScript thread, which therefore answers pings.
  silenceLimitMs: 30_000,
  // A single pool thread runs a batch and then its samplings, in the order of the calls (native.ts).
  env: { UV_THREADPOOL_SIZE: '1' },
};

const VISION_KIND: ProcessKind = {
  name: 'vision engine',
  entry: require.resolve('#vision-process'),
  silenceLimitMs: 30_000,
  // JSON, the default, cannot carry the bytes of images.
  serialization: 'advanced',
  // Further threads, so that decoding image files does not delay batches.
  env: { UV_THREADPOOL_SIZE: '3' },
};

export class Engine {
  readonly #generationByJob = new Map<number, Generation>();
  readonly #embeddingByJob = new Map<number, Embedding>();
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

  /** Starts the process and loads the model. Throws {@link EngineStartError}, or the error of `beforeStart`. */
  static async start(options: EngineOptions, signal?: AbortSignal): Promise<Engine> {
    const engine = new Engine(options);
    await engine.#process.start(signal);
    return engine;
  }

  /** Null while the process is down. */
  get facts(): EngineFacts | null {
    return this.#process.facts;
  }

  /** Process id; undefined while the process is down. */
  get pid(): number | undefined {
    return this.#process.current?.pid;
  }

  /** Starts a generation. While the process is down, the generation ends at once with `engine_failed`. */
  generate(request: GenerationRequest): Generation {
    const job = this.#nextJob++;
    const child = this.#process.current;
    const generation = new Generation(job, (type) => child?.send({ type, job }));
    if (child === null) {
      generation.end({ job, kind: 'engine_failed', message: 'the engine is not running' });
    } else {
      this.#generationByJob.set(job, generation);
      child.send({ type: 'start', job, request });
    }
    return generation;
  }

  /** Like {@link generate}, for embedding models. */
  embed(request: EmbeddingRequest): Embedding {
    const job = this.#nextJob++;
    const child = this.#process.current;
    const embedding = new Embedding(job, (type) => child?.send({ type, job }));
    if (child === null) {
      embedding.end({ job, kind: 'engine_failed', message: 'the engine is not running' });
    } else {
      this.#embeddingByJob.set(job, embedding);
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
        // Every tick is progress, even for a generation that waits for a free sequence of the KV cache.
        for (const generation of this.#generationByJob.values()) generation.engineWorked();
        for (const started of message.started) this.#generationByJob.get(started.job)?.start(started);
        this.#deliver(message);
        for (const ended of message.ended) {
          this.#generationByJob.get(ended.job)?.end(ended);
          this.#generationByJob.delete(ended.job);
        }
        return;
      case 'embedded':
        this.#embeddingByJob.get(message.job)?.push(message.vector, message.tokens);
        return;
      case 'embedding_ended':
        this.#embeddingByJob.get(message.ended.job)?.end(message.ended);
        this.#embeddingByJob.delete(message.ended.job);
        return;
      default:
        message satisfies never;
    }
  }

  #deliver({ pieces, logprobs }: Tick): void {
    const logprobsByJob = new Map<number, PieceLogprobs[]>();
    for (const each of logprobs) logprobsByJob.set(each.job, [...(logprobsByJob.get(each.job) ?? []), each]);
    for (let i = 0; i + 2 < pieces.length; i += 3) {
      const [job, tokens, text] = [pieces[i] as number, pieces[i + 1] as number, pieces[i + 2] as string];
      const own = logprobsByJob.get(job)?.shift();
      this.#generationByJob.get(job)?.push(own === undefined ? { text, tokens } : { text, tokens, logprobs: own.logprobs });
    }
  }

  #failAll(reason: string): void {
    for (const [job, generation] of this.#generationByJob) generation.end({ job, kind: 'engine_failed', message: reason });
    for (const [job, embedding] of this.#embeddingByJob) embedding.end({ job, kind: 'engine_failed', message: reason });
    this.#generationByJob.clear();
    this.#embeddingByJob.clear();
  }
}
