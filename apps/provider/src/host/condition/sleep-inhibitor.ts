/** `SleepInhibitor` prevents idle sleep of the system by a child process (`caffeinate`, `systemd-inhibit`), which ends with this process. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

interface InhibitCommand {
  readonly command: string;
  readonly args: readonly string[];
}

const WHO = 'inference-provider';
const WHY = 'Serving models to the network';
/** Delay before an inhibitor that ended is restarted, in milliseconds. Doubles up to the maximum. */
const FIRST_RETRY_MS = 30_000;
const MAX_RETRY_MS = 3_600_000;
/** Lifetime after which the retry delay is reset. */
const STABLE_MS = 60_000;

/** Null if the system has no inhibitor command. A simulated machine has its own commands under `root`. */
export function inhibitCommand(root: string, pid: number): InhibitCommand | null {
  const caffeinate = join(root, 'usr/bin/caffeinate');
  // -i: no idle sleep; -w: until this process ends (caffeinate(8)).
  if (existsSync(caffeinate)) return { command: caffeinate, args: ['-i', '-w', String(pid)] };
  const inhibit = join(root, 'usr/bin/systemd-inhibit');
  if (!existsSync(inhibit)) return null;
  return { command: inhibit, args: ['--what=sleep:idle', '--mode=block', `--who=${WHO}`, `--why=${WHY}`, 'cat'] };
}

export class SleepInhibitor {
  readonly #command: InhibitCommand | null;
  readonly #onProblem: (reason: string) => void;
  #child: ChildProcess | null = null;
  #isRequested = false;
  #retryTimer: NodeJS.Timeout | null = null;
  #retryMs = FIRST_RETRY_MS;

  /** Calls `onProblem` when the child process ends unexpectedly. It is then started again after a delay. */
  constructor(command: InhibitCommand | null, onProblem: (reason: string) => void) {
    this.#command = command;
    this.#onProblem = onProblem;
  }

  get isActive(): boolean {
    return this.#child !== null;
  }

  setActive(active: boolean): void {
    this.#isRequested = active;
    if (active) this.#start();
    else this.#stop();
  }

  #start(): void {
    if (this.#command === null || this.#child !== null || this.#retryTimer !== null) return;
    // The child reads stdin, a pipe that closes with this process.
    const child = spawn(this.#command.command, [...this.#command.args], { stdio: ['pipe', 'ignore', 'ignore'] });
    this.#child = child;
    const startedAt = performance.now();
    child.stdin?.on('error', () => {});
    // Unreferenced, so that this process can end before the child.
    child.unref();
    (child.stdin as unknown as { unref?: () => void } | null)?.unref?.();
    let hasEnded = false;
    const ended = (reason: string): void => {
      if (hasEnded) return;
      hasEnded = true;
      if (this.#child !== child) return;
      this.#child = null;
      if (!this.#isRequested) return;
      this.#onProblem(reason);
      if (performance.now() - startedAt > STABLE_MS) this.#retryMs = FIRST_RETRY_MS;
      this.#retryTimer = setTimeout(() => {
        this.#retryTimer = null;
        if (this.#isRequested) this.#start();
      }, this.#retryMs);
      this.#retryMs = Math.min(2 * this.#retryMs, MAX_RETRY_MS);
      this.#retryTimer.unref();
    };
    child.once('error', (error) => ended(error.message));
    child.once('exit', (code, signal) => ended(`the inhibitor ended with ${signal ?? code}`));
  }

  #stop(): void {
    if (this.#retryTimer !== null) clearTimeout(this.#retryTimer);
    this.#retryTimer = null;
    const child = this.#child;
    this.#child = null;
    child?.kill();
    child?.stdin?.destroy();
  }
}
