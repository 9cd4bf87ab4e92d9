/**
 * `ImageEngine`: the daemon's client of one image process, which runs one image model and one job at a time.
 *
 * If the process crashes, its jobs end with `engine_failed`, and the process is restarted after a pause.
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
  // The built file, even if tests run the sources.
  entry: createRequire(import.meta.url).resolve('#image-process'),
  // The process answers no ping while it computes a step or decodes an image.
  silenceLimitMs: 10 * 60_000,
  // JSON, the default, cannot carry the bytes of images.
  serialization: 'advanced',
};

export class ImageEngine {
  readonly #imageJobById = new Map<number, ImageJob>();
  readonly #process: SupervisedProcess<ImageSettings, ImageEngineFacts, ImageProcessRequest, ImageProcessEvent>;
  #nextJob = 1;

  private constructor({ onEvent = () => {}, ...options }: ImageEngineOptions) {
    this.#process = new SupervisedProcess(KIND, options, {
      onMessage: (message) => this.#deliver(message),
      onReady: () => onEvent({ type: 'ready' }),
      onExit: (reason) => this.#failAll(reason),
      onEvent,
    });
  }

  /** Starts the process and loads the model. Throws {@link EngineStartError}, or the error of `beforeStart`. */
  static async start(options: ImageEngineOptions, signal?: AbortSignal): Promise<ImageEngine> {
    const engine = new ImageEngine(options);
    await engine.#process.start(signal);
    return engine;
  }

  /** Null while the process is down. */
  get facts(): ImageEngineFacts | null {
    return this.#process.facts;
  }

  /** Process id; undefined while the process is down. */
  get pid(): number | undefined {
    return this.#process.current?.pid;
  }

  /** Starts or queues an image job. While the process is down, the job ends at once with `engine_failed`. */
  generateImages(request: ImageRequest): ImageJob {
    const job = this.#nextJob++;
    const child = this.#process.current;
    const imageJob = new ImageJob((type) => child?.send({ type, job }));
    if (child === null) {
      imageJob.end({ kind: 'engine_failed', message: 'the engine is not running' });
    } else {
      this.#imageJobById.set(job, imageJob);
      child.send({ type: 'generate', job, request });
    }
    return imageJob;
  }

  /** Ends the process. Running jobs end with `engine_failed`. */
  async close(): Promise<void> {
    await this.#process.close();
  }

  #deliver(message: ImageProcessEvent): void {
    const imageJob = this.#imageJobById.get(message.job);
    switch (message.type) {
      case 'reading':
        imageJob?.promptRead(message.promptTokens);
        return;
      case 'step':
        imageJob?.step(message);
        return;
      case 'image':
        imageJob?.push(message.bytes);
        return;
      case 'ended':
        imageJob?.end(message.end);
        this.#imageJobById.delete(message.job);
        return;
      default:
        message satisfies never;
    }
  }

  #failAll(reason: string): void {
    for (const imageJob of this.#imageJobById.values()) imageJob.end({ kind: 'engine_failed', message: reason });
    this.#imageJobById.clear();
  }
}
