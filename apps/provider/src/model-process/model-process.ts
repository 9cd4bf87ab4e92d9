/** `ModelProcess`: one child process that runs a model. Pings the process, and kills it if it stays silent for too long. */
import { type ChildProcess, type ForkOptions, fork } from 'node:child_process';
import { createInterface } from 'node:readline';
import { type Confinement, forkedIn } from '../host/hardening/confinement.js';
import { engineEnvironment } from '../host/hardening/engine-environment.js';
import type { ModelProcessEvent, ModelProcessRequest } from './messages.js';

const PING_EVERY_MS = 10_000;
/** Maximum characters of one line of output. */
const MAX_LINE_CHARACTERS = 512;
/** Failed assertion of ggml (llama.cpp's tensor library): names only a place in its source, so quotes no request. */
const ASSERTION = /^\S{1,200}:\d{1,6}: GGML_ASSERT\([^"]{1,200}\) failed$/;

export interface ProcessKind {
  /** Name in sentences such as "the engine process ended". */
  readonly name: string;
  readonly entry: string;
  /** Maximum silence before the process is killed, in milliseconds. */
  readonly silenceLimitMs: number;
  readonly pingEveryMs?: number;
  readonly serialization?: NonNullable<ForkOptions['serialization']>;
  /** Added to the environment of all model processes. */
  readonly env?: Readonly<Record<string, string>>;
}

interface ProcessHandlers<Event> {
  readonly onMessage: (event: Event) => void;
  /** One output line of the native library, truncated. Once the model is loaded, assertions only: other lines may quote prompts. */
  readonly onOutput: (line: string) => void;
}

type LoadEnd<Facts> = Exclude<ModelProcessEvent<Facts>, { type: 'pong' }>;

export class ModelProcess<Settings, Facts, Request extends object, Event extends object> {
  readonly #kind: ProcessKind;
  readonly #handlers: ProcessHandlers<Event>;
  readonly #child: ChildProcess;
  /** Resolves to the reason when the process has ended or could not start. */
  readonly exited: Promise<string>;
  readonly #pingEveryMs: number;
  #isAlive = true;
  #isLoaded = false;
  /** Pings since the last message. Counted instead of time, because a sleeping Mac or a frozen daemon sends no pings. */
  #unansweredPings = 0;
  #onLoad: ((end: LoadEnd<Facts>) => void) | null = null;

  constructor(kind: ProcessKind, handlers: ProcessHandlers<Event>, confinement: Pick<Confinement, 'wrap'> = { wrap: [] }) {
    this.#kind = kind;
    this.#pingEveryMs = kind.pingEveryMs ?? PING_EVERY_MS;
    this.#handlers = handlers;
    this.#child = fork(kind.entry, [], {
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      ...forkedIn(confinement),
      env: engineEnvironment(kind.env),
      serialization: kind.serialization ?? 'json',
    });
    const watchdog = setInterval(() => this.#pingOrKill(), this.#pingEveryMs);
    this.exited = new Promise((resolve) => {
      const onEnd = (reason: string): void => {
        this.#isAlive = false;
        clearInterval(watchdog);
        resolve(reason);
      };
      this.#child.once('error', (error) => onEnd(`the ${kind.name} process failed: ${error.message}`));
      this.#child.once('exit', (code, signal) => onEnd(`the ${kind.name} process ended (${signal ?? `exit code ${code}`})`));
    });
    for (const output of [this.#child.stdout, this.#child.stderr]) {
      if (output === null) continue;
      createInterface({ input: output }).on('line', (line) => {
        if (!this.#isLoaded || ASSERTION.test(line)) handlers.onOutput(line.slice(0, MAX_LINE_CHARACTERS));
      });
    }
    this.#child.on('message', (message) => this.#receive(message as ModelProcessEvent<Facts> | Event));
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Loads the model. Throws an Error whose message is meant for the Mac's owner; already aborted, the signal's reason. */
  async load(settings: Settings, timeoutMs: number, signal?: AbortSignal): Promise<Facts> {
    signal?.throwIfAborted();
    let timer: NodeJS.Timeout | undefined;
    let onAbort: (() => void) | undefined;
    try {
      const loaded = new Promise<LoadEnd<Facts>>((resolve) => (this.#onLoad = resolve));
      this.send({ type: 'load', settings });
      const end = await Promise.race([
        loaded,
        this.exited.then((reason) => Promise.reject(new Error(`${reason} while it loaded the model`))),
        new Promise<never>((_, reject) => {
          timer = setTimeout(() => reject(new Error(`the model was not loaded within ${timeoutMs / 1000} s`)), timeoutMs);
          onAbort = () => reject(new Error('loading the model was interrupted'));
          signal?.addEventListener('abort', onAbort, { once: true });
        }),
      ]);
      this.#unansweredPings = 0;
      if (end.type === 'load_failed') throw new Error(end.message);
      this.#isLoaded = true;
      return end.facts;
    } finally {
      clearTimeout(timer);
      if (onAbort !== undefined) signal?.removeEventListener('abort', onAbort);
      this.#onLoad = null;
    }
  }

  send(message: ModelProcessRequest<Settings> | Request): void {
    // Ignores errors of a closing channel; `exited` reports the end.
    if (this.#isAlive && this.#child.connected) this.#child.send(message, () => {});
  }

  /** Kills the process and waits for its exit. The process has no state to save. */
  async kill(): Promise<void> {
    if (this.#isAlive) this.#child.kill('SIGKILL');
    await this.exited;
  }

  #receive(message: ModelProcessEvent<Facts> | Event): void {
    this.#unansweredPings = 0;
    if (!isProcessEvent<Facts>(message)) this.#handlers.onMessage(message);
    else if (message.type !== 'pong') this.#onLoad?.(message);
  }

  /** Does not kill a process that loads its model, which may block. */
  #pingOrKill(): void {
    if (this.#onLoad === null && this.#unansweredPings * this.#pingEveryMs >= this.#kind.silenceLimitMs) {
      this.#child.kill('SIGKILL');
      return;
    }
    this.#unansweredPings++;
    this.send({ type: 'ping' });
  }
}

const PROCESS_EVENTS: ReadonlySet<unknown> = new Set<ModelProcessEvent<unknown>['type']>(['loaded', 'load_failed', 'pong']);

function isProcessEvent<Facts>(message: object): message is ModelProcessEvent<Facts> {
  return 'type' in message && PROCESS_EVENTS.has(message.type);
}
