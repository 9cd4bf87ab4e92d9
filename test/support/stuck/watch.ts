/** Setup for every test file: a process whose event loop is blocked for minutes prints its stack and exits. */
import { Worker } from 'node:worker_threads';
import { afterAll, beforeAll, expect } from 'vitest';

/** Far more than any step of a test takes at once. In milliseconds. */
const LONGEST_MS = 4 * 60_000;
const BEAT_MS = 1000;

// One watchdog per process, which runs many files.
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
