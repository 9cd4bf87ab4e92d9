/** Setup for every test file: a process whose event loop is blocked for minutes prints its stack and exits. */
import { Worker } from 'node:worker_threads';
import { afterAll, beforeAll, expect } from 'vitest';

/** Maximum time that the event loop may be blocked, far above any step of a test. */
const MAX_BLOCKED_MS = 4 * 60_000;
const COUNT_INTERVAL_MS = 1000;

// One watchdog per process: a process runs many test files, and each loads this module again.
const KEY = Symbol.for('test/support/stuck');
const shared = globalThis as { [KEY]?: Worker };
shared[KEY] ??= startWatcher();
const watcher = shared[KEY];
beforeAll(() => watcher.postMessage(expect.getState().testPath));
afterAll(() => watcher.postMessage(null));

function startWatcher(): Worker {
  const beats = new SharedArrayBuffer(4);
  const thread = new Worker(new URL('./watcher.mjs', import.meta.url), { workerData: { beats, longestMs: MAX_BLOCKED_MS }, execArgv: [] });
  thread.unref();
  const count = new Int32Array(beats);
  setInterval(() => Atomics.add(count, 0, 1), COUNT_INTERVAL_MS).unref();
  return thread;
}
