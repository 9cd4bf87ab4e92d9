/** `SupervisedProcess` runs a model process, and restarts it after crashes, with growing pauses and an optional limit. */
import type { Confinement } from '../host/hardening/confinement.js';
import { ModelProcess, type ProcessKind } from './model-process.js';

/** The model could not be loaded. The message is a sentence for the Mac's owner. */
export class EngineStartError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'EngineStartError';
  }
}

export type ProcessStatusEvent =
  | { readonly type: 'output'; readonly line: string }
  /** The process has crashed, or a restart has failed. The next restart follows. */
  | { readonly type: 'died'; readonly reason: string; readonly retryInMs: number }
  /** As `died`, but too often: the process is not restarted. */
  | { readonly type: 'given_up'; readonly reason: string };

export interface SupervisionOptions<Settings> {
  readonly settings: Settings;
  /** Called before every start of the process. If it rejects, the start has failed. */
  readonly beforeStart?: (signal: AbortSignal) => Promise<void>;
  /** Maximum time to load the model, in milliseconds. Default: 10 minutes. */
  readonly loadTimeoutMs?: number;
  /** First pause before a restart, in milliseconds; doubles up to a minute. Default: 500. */
  readonly firstRetryMs?: number;
  /** The process is not restarted after this many crashes and failed restarts within the time. Default: unlimited. */
  readonly giveUpAfter?: { readonly deaths: number; readonly withinMs: number };
  /** Denies the process network access. Default: does not. */
  readonly confinement?: Pick<Confinement, 'wrap'>;
}

interface SupervisedProcessHandlers<Facts, Event> {
  readonly onMessage: (event: Event) => void;
  /** Called when the model is loaded, at the first start and after restarts. */
  readonly onReady: (facts: Facts) => void;
  /** Called when a process with a loaded model has ended, before any restart. */
  readonly onExit: (reason: string) => void;
  readonly onEvent: (event: ProcessStatusEvent) => void;
}

const LOAD_TIMEOUT_MS = 10 * 60_000;
const FIRST_RETRY_MS = 500;
const MAX_RETRY_MS = 60_000;
/** Uptime after which the restart pause is the first one again. */
const STABLE_AFTER_MS = 60_000;

export class SupervisedProcess<Settings, Facts, Request extends object, Event extends object> {
  readonly #kind: ProcessKind;
  readonly #options: SupervisionOptions<Settings>;
  readonly #handlers: SupervisedProcessHandlers<Facts, Event>;
  /** The process with the loaded model; null while down. */
  #process: ModelProcess<Settings, Facts, Request, Event> | null = null;
  #loading: ModelProcess<Settings, Facts, Request, Event> | null = null;
  #facts: Facts | null = null;
  #retryMs: number;
  /** Times of crashes and failed restarts, by `performance.now()`. */
  #deaths: number[] = [];
  #retryTimer: NodeJS.Timeout | null = null;
  /** Aborted by `close`, and when no restart follows. */
  readonly #closing = new AbortController();

  constructor(kind: ProcessKind, options: SupervisionOptions<Settings>, handlers: SupervisedProcessHandlers<Facts, Event>) {
    this.#kind = kind;
    this.#options = options;
    this.#handlers = handlers;
    this.#retryMs = options.firstRetryMs ?? FIRST_RETRY_MS;
  }

  get current(): Pick<ModelProcess<Settings, Facts, Request, Event>, 'pid' | 'send'> | null {
    return this.#process;
  }

  /** Null while the process is down. */
  get facts(): Facts | null {
    return this.#process === null ? null : this.#facts;
  }

  /** Starts the process and loads the model. Throws {@link EngineStartError}, or the error of `beforeStart`. */
  async start(signal: AbortSignal = this.#closing.signal): Promise<void> {
    const { settings, beforeStart, confinement, loadTimeoutMs = LOAD_TIMEOUT_MS } = this.#options;
    const { onMessage, onReady, onEvent } = this.#handlers;
    await beforeStart?.(signal);
    if (signal.aborted) throw new EngineStartError('loading the model was interrupted');
    const onOutput = (line: string): void => onEvent({ type: 'output', line });
    const child = new ModelProcess<Settings, Facts, Request, Event>(this.#kind, { onMessage, onOutput }, confinement);
    this.#loading = child;
    let facts: Facts;
    try {
      facts = await child.load(settings, loadTimeoutMs, signal);
    } catch (error) {
      await child.kill();
      throw new EngineStartError(error instanceof Error ? error.message : 'the engine could not start');
    } finally {
      this.#loading = null;
    }
    this.#facts = facts;
    this.#process = child;
    const since = Date.now();
    void child.exited.then((reason) => this.#onExit(child, reason, since));
    onReady(facts);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    if (this.#retryTimer !== null) clearTimeout(this.#retryTimer);
    await this.#loading?.kill();
    await this.#process?.kill();
  }

  get #isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  #onExit(child: ModelProcess<Settings, Facts, Request, Event>, reason: string, since: number): void {
    if (this.#process !== child) return;
    this.#process = null;
    this.#handlers.onExit(reason);
    if (this.#isClosed) return;
    if (Date.now() - since > STABLE_AFTER_MS) this.#retryMs = this.#options.firstRetryMs ?? FIRST_RETRY_MS;
    this.#retry(reason);
  }

  #retry(reason: string): void {
    const { giveUpAfter } = this.#options;
    const { onEvent } = this.#handlers;
    if (giveUpAfter !== undefined) {
      const now = performance.now();
      this.#deaths = [...this.#deaths, now].filter((death) => now - death < giveUpAfter.withinMs);
      if (this.#deaths.length >= giveUpAfter.deaths) {
        this.#closing.abort();
        onEvent({ type: 'given_up', reason });
        return;
      }
    }
    const retryInMs = this.#retryMs;
    this.#retryMs = Math.min(2 * retryInMs, MAX_RETRY_MS);
    onEvent({ type: 'died', reason, retryInMs });
    this.#retryTimer = setTimeout(() => {
      this.start().catch((error: unknown) => {
        if (!this.#isClosed) this.#retry(error instanceof Error ? error.message : 'the engine could not start');
      });
    }, retryInMs);
  }
}
