/**
 * `Guard` runs the agent during the trial of a new version: as a child process, restarted after failures.
 *
 * Restores the previous version after three failed starts or without a confirmation in time. The guard itself is code of the previous version.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { countStart, readTrial, rollBack, type Trial, trialPath } from '../trial.js';

/** Starts without a confirmation before the rollback. */
const MAX_STARTS = 3;
const POLL_INTERVAL_MS = 200;
const PAUSE_MS = 1_000;
/** Time between the stop request and the kill. */
const STOP_MS = 10_000;

interface GuardOptions {
  readonly prefix: string;
  /** Arguments that the owner or the service passed to the agent. */
  readonly args: readonly string[];
  readonly say: (sentence: string) => void;
}

export class Guard {
  #child: ChildProcess | null = null;
  #stopping: NodeJS.Signals | null = null;

  constructor(private readonly options: GuardOptions) {}

  /** Stops the agent. The first request closes the IPC channel, because a second signal would force the shutdown. */
  stop(signal: NodeJS.Signals): void {
    const child = this.#child;
    const again = this.#stopping !== null;
    this.#stopping = signal;
    if (child === null) return;
    if (child.connected && !again) child.disconnect();
    else child.kill(signal);
  }

  reloadSettings(): void {
    this.#child?.kill('SIGHUP');
  }

  /** Resolves to the agent's exit code. */
  async run(): Promise<number> {
    const { prefix, say } = this.options;
    for (;;) {
      const trial = readTrial(prefix);
      if (trial === null) return await exitOf(this.#start());
      if (trial.starts >= MAX_STARTS) {
        this.#restorePrevious(trial, `exited ${MAX_STARTS} times before its confirmation`);
        continue;
      }
      const counted = countStart(prefix, trial);
      const end = await this.#runOnTrial(counted);
      if (end === 'too late') {
        this.#restorePrevious(counted, `not confirmed within ${Math.round(trial.patience_ms / 1000)} s`);
        continue;
      }
      if (this.#stopping !== null || end.confirmed) return end.code;
      say(`version ${trial.version} exited with ${end.code} before its confirmation (start ${counted.starts} of ${MAX_STARTS})`);
      if (counted.starts < MAX_STARTS) await pause(PAUSE_MS);
      if (this.#stopping !== null) return end.code;
    }
  }

  #restorePrevious(trial: Trial, reason: string): void {
    this.options.say(`version ${trial.version} is not used: ${reason}. Version ${trial.previous} was restored.`);
    rollBack(this.options.prefix, trial, reason, Date.now());
  }

  async #runOnTrial(trial: Trial): Promise<'too late' | { readonly code: number; readonly confirmed: boolean }> {
    const child = this.#start();
    const deadline = performance.now() + trial.patience_ms;
    const isTrialOver = (): boolean => !existsSync(trialPath(this.options.prefix));
    let late = false;
    const polling = setInterval(() => {
      if (isTrialOver()) clearInterval(polling);
      else if (performance.now() > deadline && !late && this.#stopping === null) {
        late = true;
        end(child);
      }
    }, POLL_INTERVAL_MS);
    try {
      const code = await exitOf(child);
      if (late && !isTrialOver()) return 'too late';
      return { code, confirmed: isTrialOver() };
    } finally {
      clearInterval(polling);
    }
  }

  /** The agent ends when its IPC channel closes, and so does not outlive a killed guard. */
  #start(): ChildProcess {
    const main = join(this.options.prefix, 'current', 'bin', 'inference-provider.js');
    this.#child = spawn(process.execPath, [main, ...this.options.args], { stdio: ['inherit', 'inherit', 'inherit', 'ipc'] });
    if (this.#stopping !== null) this.#child.disconnect();
    return this.#child;
  }
}

function end(child: ChildProcess): void {
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
  child.once('exit', () => clearTimeout(timer));
}

function exitOf(child: ChildProcess): Promise<number> {
  return new Promise((resolve) => {
    child.once('error', () => resolve(1));
    child.once('exit', (code) => resolve(code ?? 1));
  });
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
