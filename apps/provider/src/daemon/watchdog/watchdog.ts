/** `Watchdog`: a worker thread kills the process when its event loop is stuck, so that a service manager restarts the daemon. */
import { createRequire } from 'node:module';
import { Worker } from 'node:worker_threads';
import type { WatchdogData } from './thread.js';

/** Resolved through package.json, so that sources (tests) and build find the same file. */
const ENTRY = createRequire(import.meta.url).resolve('#watchdog');

/** The daemon must restart within a minute after its event loop blocks. */
const LIMIT_MS = 45_000;
const TICK_MS = 1_000;

export class Watchdog {
  readonly #timer: NodeJS.Timeout;
  readonly #worker: Worker;

  constructor({ tickMs = TICK_MS, limitMs = LIMIT_MS }: { readonly tickMs?: number; readonly limitMs?: number } = {}) {
    const beats = new SharedArrayBuffer(4);
    const counter = new Int32Array(beats);
    this.#timer = setInterval(() => Atomics.add(counter, 0, 1), tickMs);
    this.#timer.unref();
    const data: WatchdogData = { beats, tickMs, limitMs };
    this.#worker = new Worker(ENTRY, { workerData: data, execArgv: [], env: {}, resourceLimits: { maxOldGenerationSizeMb: 16 } });
    this.#worker.unref();
    // Without the thread the daemon runs unwatched; stderr is the only place to report.
    this.#worker.on('error', (error) => process.stderr.write(`The watchdog has ended: ${error.message}\n`));
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#worker.terminate();
  }
}
