/** `WorkerProcess` runs stable-diffusion.cpp on Bare, a JavaScript runtime, and exchanges JSON lines with it. Its output is discarded. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Duplex } from 'node:stream';

/** Resolved through package.json, so the worker is found from the sources (tests) and from the build. */
const WORKER = createRequire(import.meta.url).resolve('#stable-diffusion-worker');
const CHECK_EVERY_MS = 500;
/** Of Linux's `/proc`. */
const PAGE_BYTES = 4096;

export type WorkerEvent =
  | { readonly type: 'loaded' }
  | { readonly type: 'progress'; readonly news: Readonly<Record<string, unknown>> }
  | { readonly type: 'image'; readonly base64: string }
  | { readonly type: 'drawn' }
  | { readonly type: 'failed'; readonly message: string };

export class WorkerProcess {
  readonly #child: ChildProcess;
  readonly #channel: Duplex;
  /** Called for each message. Replaced by the caller. */
  onMessage: (event: WorkerEvent) => void = () => {};
  /** Called when the process has ended or could not start. Replaced by the caller. */
  onEnd: () => void = () => {};

  /** Starts the runtime in the folder `addOn`. Kills the process if its memory exceeds `memoryLimit` bytes. */
  constructor(addOn: string, memoryLimit: number | null) {
    const packages = join(addOn, 'node_modules');
    const bare = join(packages, `bare-runtime-${process.platform}-${process.arch}`, 'bin', 'bare');
    // Standard output and error are ignored, because they may contain prompts.
    this.#child = spawn(bare, [WORKER, packages], { stdio: ['ignore', 'ignore', 'ignore', 'pipe'] });
    this.#channel = this.#child.stdio[3] as Duplex;
    createInterface({ input: this.#channel }).on('line', (line) => this.onMessage(JSON.parse(line) as WorkerEvent));
    const watch = memoryLimit === null ? null : setInterval(() => this.#watchMemory(memoryLimit), CHECK_EVERY_MS);
    const ended = (): void => {
      if (watch !== null) clearInterval(watch);
      this.onEnd();
    };
    // Writing to an ended worker fails; `exit` reports its end.
    this.#channel.on('error', () => {});
    this.#child.once('error', ended);
    this.#child.once('exit', ended);
  }

  send(message: { readonly type: 'load' | 'draw' | 'cancel'; readonly [member: string]: unknown }): void {
    if (this.#channel.writable) this.#channel.write(`${JSON.stringify(message)}\n`);
  }

  #watchMemory(limit: number): void {
    const { pid } = this.#child;
    if (pid === undefined) return;
    residentBytes(pid, (bytes) => {
      if (bytes > limit) this.#child.kill('SIGKILL');
    });
  }
}

/** Reports the resident memory of a process, unless it cannot be read. */
function residentBytes(pid: number, report: (bytes: number) => void): void {
  if (process.platform === 'linux') {
    try {
      report(Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]) * PAGE_BYTES);
    } catch {
      // The process has just ended.
    }
    return;
  }
  execFile('ps', ['-o', 'rss=', '-p', String(pid)], (error, output) => {
    if (error === null) report(Number(output) * 1024);
  });
}
