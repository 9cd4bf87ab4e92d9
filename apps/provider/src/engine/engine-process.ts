/**
 * One child process that holds a model. Its console output comes back line by line, for the log. A process that answers
 * no ping for half a minute is killed: its JavaScript thread never blocks while the model decodes, so it hangs.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { type Confinement, forkedIn } from '../hardening/confinement.js';
import { engineEnvironment } from '../hardening/engine-environment.js';
import type { EngineFacts, EngineSettings, FromEngine, ToEngine } from './messages.js';

type Tick = FromEngine & { type: 'tick' };
type EmbeddingNews = FromEngine & { type: 'embedded' | 'embedding_ended' };

const PING_EVERY_MS = 10_000;
const SILENCE_LIMIT_MS = 30_000;
/** Characters of one line of output. */
const MAX_LINE = 512;

/** Named in package.json, so that it is found from the sources (tests) and from the build alike. */
const ENTRY = createRequire(import.meta.url).resolve('#engine-process');

export interface EngineProcessHandlers {
  readonly onTick: (tick: Tick) => void;
  readonly onEmbedding: (news: EmbeddingNews) => void;
  /** One line that the native library wrote, cut to a sane length. */
  readonly onOutput: (line: string) => void;
}

export class EngineProcess {
  readonly #child: ChildProcess;
  /** Settles with the reason when the process is gone. */
  readonly exited: Promise<string>;
  #alive = true;
  #lastSign = Date.now();
  #onLoad: ((result: FromEngine & { type: 'loaded' | 'load_failed' }) => void) | null = null;

  constructor(
    private readonly handlers: EngineProcessHandlers,
    confinement: Pick<Confinement, 'wrap'> = { wrap: [] },
  ) {
    this.#child = fork(ENTRY, [], {
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      ...forkedIn(confinement),
      // The single thread keeps a batch and the samplings from it in order (see native.ts).
      env: engineEnvironment({ UV_THREADPOOL_SIZE: '1' }),
    });
    const watchdog = setInterval(() => this.#watch(), PING_EVERY_MS);
    this.exited = new Promise((resolve) => {
      const gone = (reason: string) => {
        this.#alive = false;
        clearInterval(watchdog);
        resolve(reason);
      };
      this.#child.once('error', (error) => gone(`the engine process failed: ${error.message}`));
      this.#child.once('exit', (code, signal) => gone(`the engine process ended (${signal ?? `exit code ${code}`})`));
    });
    for (const output of [this.#child.stdout, this.#child.stderr]) {
      if (output === null) continue;
      createInterface({ input: output }).on('line', (line) => handlers.onOutput(line.slice(0, MAX_LINE)));
    }
    this.#child.on('message', (message) => this.#receive(message as FromEngine));
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Loads the model. Throws an Error with a sentence for the owner when it cannot be loaded in time. */
  async load(settings: EngineSettings, timeoutMs: number, signal?: AbortSignal): Promise<EngineFacts> {
    signal?.throwIfAborted();
    let timer: NodeJS.Timeout | undefined;
    let onAbort: (() => void) | undefined;
    try {
      const loaded = new Promise<FromEngine & { type: 'loaded' | 'load_failed' }>((resolve) => (this.#onLoad = resolve));
      this.send({ type: 'load', settings });
      const result = await Promise.race([
        loaded,
        this.exited.then((reason) => Promise.reject(new Error(`${reason} while it loaded the model`))),
        new Promise<never>((_, reject) => {
          timer = setTimeout(() => reject(new Error(`the model was not loaded within ${timeoutMs / 1000} s`)), timeoutMs);
          onAbort = () => reject(new Error('loading the model was interrupted'));
          signal?.addEventListener('abort', onAbort, { once: true });
        }),
      ]);
      this.#lastSign = Date.now();
      if (result.type === 'load_failed') throw new Error(result.message);
      return result.facts;
    } finally {
      clearTimeout(timer);
      if (onAbort !== undefined) signal?.removeEventListener('abort', onAbort);
      this.#onLoad = null;
    }
  }

  send(message: ToEngine): void {
    // The callback takes the error of a channel that is closing; `exited` tells the rest.
    if (this.#alive && this.#child.connected) this.#child.send(message, () => {});
  }

  /** Kills the process and waits until it is gone. There is nothing in it to save. */
  async kill(): Promise<void> {
    if (this.#alive) this.#child.kill('SIGKILL');
    await this.exited;
  }

  #receive(message: FromEngine): void {
    this.#lastSign = Date.now();
    switch (message.type) {
      case 'tick':
        this.handlers.onTick(message);
        return;
      case 'embedded':
      case 'embedding_ended':
        this.handlers.onEmbedding(message);
        return;
      case 'loaded':
      case 'load_failed':
        this.#onLoad?.(message);
        return;
      case 'pong':
        return;
      default:
        message satisfies never;
    }
  }

  #watch(): void {
    if (this.#onLoad === null && Date.now() - this.#lastSign > SILENCE_LIMIT_MS) {
      this.#child.kill('SIGKILL');
      return;
    }
    this.send({ type: 'ping' });
  }
}
