/**
 * An image engine as the daemon sees it: a supervised child process. Jobs run in sequence; a crash fails only running and queued
 * jobs.
 */
import { createRequire } from 'node:module';
import type { ProcessKind } from '../model-process/model-process.js';
import { type ProcessStatusEvent, SupervisedProcess, type SupervisionOptions } from '../model-process/supervised-process.js';
import { ImageJob } from './image-job.js';
import type { ImageEngineFacts, ImageProcessEvent, ImageProcessRequest, ImageRequest, ImageSettings } from './messages.js';

export type ImageEngineStatusEvent = ProcessStatusEvent | { readonly type: 'ready' };

export interface ImageEngineOptions extends SupervisionOptions<ImageSettings> {
  readonly onEvent?: (event: ImageEngineStatusEvent) => void;
}

const KIND: ProcessKind = {
  name: 'image',
  // Resolved through package.json, so the entry is found from the sources (tests) and from the build.
  entry: createRequire(import.meta.url).resolve('#image-process'),
  // The process answers no ping while computing a step or decoding an image.
  silenceLimitMs: 10 * 60_000,
  // Pictures travel as bytes.
  serialization: 'advanced',
};

export class ImageEngine {
  readonly #drawings = new Map<number, ImageJob>();
  readonly #kept: SupervisedProcess<ImageSettings, ImageEngineFacts, ImageProcessRequest, ImageProcessEvent>;
  #nextJob = 1;

  private constructor({ onEvent = () => {}, ...options }: ImageEngineOptions) {
    this.#kept = new SupervisedProcess(KIND, options, {
      onMessage: (news) => this.#deliver(news),
      onReady: () => onEvent({ type: 'ready' }),
      onExit: (reason) => this.#failAll(reason),
      onEvent,
    });
  }

  /** Starts the process and loads the model. Throws {@link EngineStartError}. */
  static async start(options: ImageEngineOptions, signal?: AbortSignal): Promise<ImageEngine> {
    const engine = new ImageEngine(options);
    await engine.#kept.start(signal);
    return engine;
  }

  /** Null while the engine is down. */
  get facts(): ImageEngineFacts | null {
    return this.#kept.facts;
  }

  /** Process id, for tests and for the owner's log. */
  get pid(): number | undefined {
    return this.#kept.current?.pid;
  }

  /** Starts or queues an image job. While the engine is down, the job ends at once with `engine_failed`. */
  generateImages(request: ImageRequest): ImageJob {
    const job = this.#nextJob++;
    const child = this.#kept.current;
    const drawing = new ImageJob((type) => child?.send({ type, job }));
    if (child === null) {
      drawing.end({ kind: 'engine_failed', message: 'the engine is not running' });
    } else {
      this.#drawings.set(job, drawing);
      child.send({ type: 'draw', job, request });
    }
    return drawing;
  }

  /** Ends the process. Running drawings end with `engine_failed`. */
  async close(): Promise<void> {
    await this.#kept.close();
  }

  #deliver(news: ImageProcessEvent): void {
    const drawing = this.#drawings.get(news.job);
    switch (news.type) {
      case 'reading':
        drawing?.read(news.promptTokens);
        return;
      case 'step':
        drawing?.step(news);
        return;
      case 'image':
        drawing?.push(news.bytes);
        return;
      case 'ended':
        drawing?.end(news.end);
        this.#drawings.delete(news.job);
        return;
      default:
        news satisfies never;
    }
  }

  #failAll(reason: string): void {
    for (const drawing of this.#drawings.values()) drawing.end({ kind: 'engine_failed', message: reason });
    this.#drawings.clear();
  }
}
