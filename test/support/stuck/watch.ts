/** Setup for every test file: a process whose event loop is blocked for minutes prints its stack and exits. */
import { Worker } from 'node:worker_threads';
import { afterAll, beforeAll, expect } from 'vitest';

/** Maximum time that the event loop may be blocked, far above any step of a test. */
const LONGEST_MS = 4 * 60_000;
const BEAT_MS = 1000;

// One watchdog per process: a process runs many test files, and each loads this module again.
const KEY = Symbol.for('test/support/stuck');
const kept = globalThis as { [KEY]?: Worker };
kept[KEY] ??= startWatcher();
const watcher = kept[KEY];
beforeAll(() => watcher.postMessage(expect.getState().testPath));
afterAll(() => watcher.postMessage(null));

function startWatcher(): Worker {
  const beats = new SharedArrayBuffer(4);
  const thread = new Worker(new URL('./watcher.mjs', import.meta.url), { workerData: { beats, longestMs: LONGEST_MS }, execArgv: [] });
  thread.unref();
  const count = new Int32Array(beats);
  setInterval(() => Atomics.add(count, 0, 1), BEAT_MS).unref();
  return thread;
}
