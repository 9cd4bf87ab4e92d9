/** `Supervised` runs the daemon as a child process. Restarts it with exponential backoff, unless the exit code is 0 or a stop was requested. */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

const MAX_PAUSE_MS = 60_000;
/** A run of this length resets the backoff. */
const GOOD_RUN_MS = 60_000;

export interface SuperviseOptions {
  /** Program first. */
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly directory: string;
  readonly outputFile: string;
  /** Time after the stop request until the child is killed. */
  readonly stopMs: number;
  readonly minPauseMs?: number;
}

interface SupervisedState {
  readonly pid: number | null;
  /** Starts after the first. */
  readonly restarts: number;
  readonly last_exit: string | null;
  /** Milliseconds since 1970; null while the child runs. */
  readonly next_start_at: number | null;
}

/** Starts the program through a shell, because Node.js cannot limit core dumps. */
const WITHOUT_CORE_DUMPS = ['/bin/sh', '-c', 'ulimit -c 0; exec "$@"', 'sh'];

export class Supervised {
  #child: ChildProcess | null = null;
  #restarts = 0;
  #lastExit: string | null = null;
  #nextStartAt: number | null = null;
  readonly #stop = new AbortController();
  readonly #ended: Promise<void>;

  constructor(private readonly options: SuperviseOptions) {
    this.#ended = this.#run();
  }

  /** Resolves when the child has ended and will not be restarted. */
  get ended(): Promise<void> {
    return this.#ended;
  }

  get state(): SupervisedState {
    return { pid: this.#child?.pid ?? null, restarts: this.#restarts, last_exit: this.#lastExit, next_start_at: this.#nextStartAt };
  }

  /** Resolves after the exit. */
  async stop(): Promise<void> {
    this.#stop.abort();
    this.#child?.kill('SIGTERM');
    const timer = setTimeout(() => this.#child?.kill('SIGKILL'), this.options.stopMs);
    await this.#ended;
    clearTimeout(timer);
  }

  async #run(): Promise<void> {
    const { minPauseMs = 1_000 } = this.options;
    const { signal } = this.#stop;
    let pauseMs = minPauseMs;
    while (!signal.aborted) {
      const startedAt = performance.now();
      const exit = await this.#runOnce();
      this.#child = null;
      this.#lastExit = exit;
      if (exit === 'exit code 0' || signal.aborted) return;
      pauseMs = performance.now() - startedAt >= GOOD_RUN_MS ? minPauseMs : pauseMs;
      this.#nextStartAt = Date.now() + pauseMs;
      await delay(pauseMs, undefined, { signal }).catch(() => {});
      this.#nextStartAt = null;
      pauseMs = Math.min(MAX_PAUSE_MS, pauseMs * 2);
      this.#restarts++;
    }
  }

  /** Resolves with the exit as text. */
  #runOnce(): Promise<string> {
    const { command, environment, directory, outputFile } = this.options;
    const [program = '', ...args] = [...WITHOUT_CORE_DUMPS, ...command];
    const output = openSync(outputFile, 'a', 0o600);
    try {
      // The daemon ends when the IPC channel closes.
      const child = spawn(program, args, { cwd: directory, env: environment, stdio: ['ignore', output, output, 'ipc'] });
      this.#child = child;
      return new Promise((resolve) => {
        child.once('error', (error) => resolve(`could not be started: ${error.message}`));
        child.once('exit', (code, signal) => resolve(signal ?? `exit code ${code}`));
      });
    } finally {
      closeSync(output);
    }
  }
}
