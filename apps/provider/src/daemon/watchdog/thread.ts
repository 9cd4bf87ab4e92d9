/**
 * Worker thread of the watchdog: kills the process when the main thread's event loop is blocked for too long.
 *
 * System sleep and a stopped process also stop this thread. Such a time counts as two ticks at most.
 */
import { writeSync } from 'node:fs';
import { workerData } from 'node:worker_threads';

export interface WatchdogData {
  /** A counter that the main thread increments every tick. */
  readonly beats: SharedArrayBuffer;
  readonly tickMs: number;
  readonly limitMs: number;
}

const { beats, tickMs, limitMs } = workerData as WatchdogData;
const counter = new Int32Array(beats);
let seen = Atomics.load(counter, 0);
let stuckMs = 0;
let last = performance.now();

setInterval(() => {
  const now = performance.now();
  const passed = Math.min(now - last, 2 * tickMs);
  last = now;
  const beat = Atomics.load(counter, 0);
  stuckMs = beat === seen ? stuckMs + passed : 0;
  seen = beat;
  if (stuckMs < limitMs) return;
  writeSync(2, `The provider was stuck for ${Math.round(stuckMs / 1000)} s, so the process was ended.\n`);
  process.kill(process.pid, 'SIGKILL');
}, tickMs);
