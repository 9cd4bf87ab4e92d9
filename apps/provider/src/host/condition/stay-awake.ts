/**
 * Keeps the system from going to sleep by itself while it is wanted, and never the display. A child process holds the wish, and it ends
 * with this process however that ends: on a Mac because it watches this process id, on Linux because it reads a pipe whose other end
 * only this process has.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

export interface AwakeCommand {
  readonly command: string;
  readonly args: readonly string[];
}

const WHO = 'inference-provider';
const WHY = 'Serving models to the network';
/** A child that ends although it is wanted is started again after this, in milliseconds; twice as long each time, up to the longest. */
const AGAIN_MS = 30_000;
const LONGEST_MS = 3_600_000;
/** One that lived so long did its work. */
const WELL_MS = 60_000;

/** Null: this system has nothing that could keep it awake. `root`: `/` but for a simulated machine, which has its own commands or none. */
export function awakeCommand(root: string, pid: number): AwakeCommand | null {
  const caffeinate = join(root, 'usr/bin/caffeinate');
  // -i: no idle sleep; -w: until that process has ended (caffeinate(8)).
  if (existsSync(caffeinate)) return { command: caffeinate, args: ['-i', '-w', String(pid)] };
  const inhibit = join(root, 'usr/bin/systemd-inhibit');
  if (!existsSync(inhibit)) return null;
  return { command: inhibit, args: ['--what=sleep:idle', '--mode=block', `--who=${WHO}`, `--why=${WHY}`, 'cat'] };
}

export class StayAwake {
  readonly #command: AwakeCommand | null;
  readonly #onProblem: (reason: string) => void;
  #child: ChildProcess | null = null;
  #wanted = false;
  #again: NodeJS.Timeout | null = null;
  #againMs = AGAIN_MS;

  /** `onProblem`: it could not be done, and is tried again. */
  constructor(command: AwakeCommand | null, onProblem: (reason: string) => void) {
    this.#command = command;
    this.#onProblem = onProblem;
  }

  /** Whether something keeps the system awake now. */
  get active(): boolean {
    return this.#child !== null;
  }

  want(wanted: boolean): void {
    this.#wanted = wanted;
    if (wanted) this.#start();
    else this.#stop();
  }

  #start(): void {
    if (this.#command === null || this.#child !== null || this.#again !== null) return;
    // The child's standard input is the pipe that ends with this process.
    const child = spawn(this.#command.command, [...this.#command.args], { stdio: ['pipe', 'ignore', 'ignore'] });
    this.#child = child;
    const startedAt = performance.now();
    child.stdin?.on('error', () => {});
    // It must not keep this process, either.
    child.unref();
    (child.stdin as unknown as { unref?: () => void } | null)?.unref?.();
    let told = false;
    const ended = (reason: string): void => {
      if (told) return;
      told = true;
      if (this.#child !== child) return;
      this.#child = null;
      if (!this.#wanted) return;
      this.#onProblem(reason);
      if (performance.now() - startedAt > WELL_MS) this.#againMs = AGAIN_MS;
      this.#again = setTimeout(() => {
        this.#again = null;
        if (this.#wanted) this.#start();
      }, this.#againMs);
      this.#againMs = Math.min(2 * this.#againMs, LONGEST_MS);
      this.#again.unref();
    };
    child.once('error', (error) => ended(error.message));
    child.once('exit', (code, signal) => ended(`it ended with ${signal ?? code}`));
  }

  #stop(): void {
    if (this.#again !== null) clearTimeout(this.#again);
    this.#again = null;
    const child = this.#child;
    this.#child = null;
    child?.kill();
    child?.stdin?.destroy();
  }
}
