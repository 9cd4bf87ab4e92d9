/**
 * An image engine as the daemon sees it: a child process that is started, watched and started again when it dies, as the text
 * engine is. Drawings are made one after the other; a crash fails those that were running or waiting, and nothing else.
 */

import { type EngineEvent, EngineStartError } from '../engine/engine.js';
import type { Confinement } from '../hardening/confinement.js';
import { Drawing } from './drawing.js';
import { type DrawingNews, ImageProcess } from './image-process.js';
import type { DrawRequest, ImageEngineFacts, ImageSettings } from './messages.js';

/** As the text engine's, less what only streams of tokens have. */
export type ImageEngineEvent = Exclude<EngineEvent, { type: 'ready' }> | { readonly type: 'ready' };

export interface ImageEngineOptions {
  readonly settings: ImageSettings;
  readonly onEvent?: (event: ImageEngineEvent) => void;
  /** Deadline of loading, in milliseconds. */
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

export class ImageEngine {
  readonly #drawings = new Map<number, Drawing>();
  #process: ImageProcess | null = null;
  #loading: ImageProcess | null = null;
  #facts: ImageEngineFacts | null = null;
  #nextJob = 1;
  #retryMs: number;
  /** When it died, in milliseconds. */
  #deaths: number[] = [];
  #retryTimer: NodeJS.Timeout | null = null;
  #closed = false;

  private constructor(private readonly options: ImageEngineOptions) {
    this.#retryMs = options.firstRetryMs ?? FIRST_RETRY_MS;
  }

  /** Starts the process and loads the model. Throws {@link EngineStartError}. */
  static async start(options: ImageEngineOptions, signal?: AbortSignal): Promise<ImageEngine> {
    const engine = new ImageEngine(options);
    await engine.#launch(signal);
    return engine;
  }

  /** Null while the engine is down. */
  get facts(): ImageEngineFacts | null {
    return this.#process === null ? null : this.#facts;
  }

  /** Process id, for tests and for the owner's log. */
  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /** Begins a drawing, or lets it wait for those before it. While the engine is down it ends at once with `engine_failed`. */
  draw(request: DrawRequest): Drawing {
    const job = this.#nextJob++;
    const child = this.#process;
    const drawing = new Drawing((type) => child?.send({ type, job }));
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
    this.#closed = true;
    if (this.#retryTimer !== null) clearTimeout(this.#retryTimer);
    await this.#loading?.kill();
    await this.#process?.kill();
  }

  async #launch(signal?: AbortSignal): Promise<void> {
    const child = new ImageProcess(
      {
        onOutput: (line) => this.options.onEvent?.({ type: 'output', line }),
        onNews: (news) => this.#deliver(news),
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
    this.options.onEvent?.({ type: 'ready' });
  }

  #deliver(news: DrawingNews): void {
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

  #onExit(child: ImageProcess, reason: string, since: number): void {
    if (this.#process !== child) return;
    this.#process = null;
    for (const drawing of this.#drawings.values()) drawing.end({ kind: 'engine_failed', message: reason });
    this.#drawings.clear();
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
